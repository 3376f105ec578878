#!/usr/bin/env bash
# Builds Slurm from the archive that HPCLAUNCH_TEST_SLURM_SOURCE names (slurm-*.tar.*, as SchedMD ships it) and
# prints the folder that it is installed in. With its bin and sbin before all else on PATH the tests use it instead
# of the system's. 5 minutes on two cores the first time; then it is kept in
# ${XDG_CACHE_HOME:-~/.cache}/hpclaunch-tests, under a name made of all that it depends on. The packages of Debian 12
# that it needs are in slurm-build-packages.txt. Tried with 25.05.9.
set -euo pipefail

archive=${HPCLAUNCH_TEST_SLURM_SOURCE:?it names the source archive of a Slurm}
made_of=$(cat "$archive" "${BASH_SOURCE[0]}" | sha256sum)
name=${archive##*/}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hpclaunch-tests
prefix=$cache/${name%.tar*}-${made_of:0:12}
mkdir -p "$cache"

# Its programs know where they are, so it is made in its own place; the file "built" comes last. Of two builds
# at once the second waits.
exec 9>"$prefix.lock"
flock 9
if [[ -e $prefix/built ]]; then
    printf '%s\n' "$prefix"
    exit
fi
rm -rf -- "$prefix"
exec 3>&2
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
trap 'tail -n 30 "$prefix.log" >&3; echo "building Slurm failed; all of its log is $prefix.log" >&3' ERR
{
    tar -x -f "$archive" -C "$work" --strip-components=1
    cd "$work"
    # An archive may come without documentation and tests, of which configure wants these.
    for file in doc/html/configurator.html.in doc/html/configurator.easy.html.in testsuite/testsuite.conf.sample.in; do
        [[ -e $file ]] || touch "$file"
    done
    # Several slurmd on one machine: without that option they cannot reach each other, and jobs stay COMPLETING.
    ./configure --prefix="$prefix" --sysconfdir="$prefix/etc" --enable-multiple-slurmd --disable-x11 \
        --with-munge=/usr --with-json=/usr --with-http-parser=/usr --with-yaml=/usr \
        --with-pmix=/usr/lib/x86_64-linux-gnu/pmix2 CFLAGS='-O1 -g0 -w'
    nice -n 5 make -j2 -C src # its documentation is not needed
    make -C src install
    # the accounting database needs it, and configure only notes that it is left out
    [[ -e $prefix/lib/slurm/accounting_storage_mysql.so && -e $prefix/lib/slurm/mpi_pmix.so ]]
} </dev/null >"$prefix.log" 2>&1
touch "$prefix/built"
printf '%s\n' "$prefix"
