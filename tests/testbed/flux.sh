#!/usr/bin/env bash
# Builds flux-core from the source archive that HPCLAUNCH_TEST_FLUX_SOURCE names (flux-core-0.88.0.tar.xz, 0.88.0 was tried) and
# prints the folder of the installation; tests/job/test_real_flux.py runs jobs on it. Takes about 3 minutes on two idle
# cores the first time; then it is kept in ${XDG_CACHE_HOME:-~/.cache}/hpclaunch-tests, under a name made of all that it
# depends on. Needs Debian's autoconf automake libtool pkg-config make gcc libzmq3-dev libjansson-dev liblz4-dev
# liblua5.1-0-dev lua5.1 lua-posix libhwloc-dev libsqlite3-dev libarchive-dev libncurses-dev uuid-dev python3-dev
# python3-cffi python3-yaml python3-ply.
set -euo pipefail

source=${HPCLAUNCH_TEST_FLUX_SOURCE:?names the source archive of flux-core, such as flux-core-0.88.0.tar.xz}
[[ -r $source ]] || { echo "$source: cannot be read (HPCLAUNCH_TEST_FLUX_SOURCE)" >&2 && exit 1; }
version=$(basename "$source")
version=${version#flux-core-} version=${version%.tar.*}
made_of=$(sha256sum <"$source" | cat - "${BASH_SOURCE[0]}" | sha256sum)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hpclaunch-tests
folder=$cache/flux-core-$version-${made_of:0:12}
mkdir -p "$cache"

# It knows where it is, so it is made in its own place; the file "built" comes last. Of two builds at once the second
# waits.
exec 9>"$folder.lock"
flock 9
if [[ -e $folder/built ]]; then
    printf '%s\n' "$folder"
    exit
fi
rm -rf -- "$folder"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
exec 3>&2
trap 'tail -n 30 "$folder.log" >&3; echo "building flux-core failed; all of its log is $folder.log" >&3' ERR
{
    tar -xf "$source" -C "$work" --strip-components=1
    cd "$work"
    # Its Python bindings are those of the system's Python, whose packages they need.
    export FLUX_VERSION=$version PYTHON=/usr/bin/python3 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    PYTHON_VERSION=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    export PYTHON_VERSION
    ./autogen.sh
    ./configure --prefix="$folder" --disable-docs --without-systemd CFLAGS='-O1 -g0 -w'
    nice -n 5 make -j2 -C src
    nice -n 5 make -C etc
    make -C src install
    make -C etc install
} </dev/null >"$folder.log" 2>&1
touch "$folder/built"
printf '%s\n' "$folder"
