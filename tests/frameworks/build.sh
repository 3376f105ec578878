#!/usr/bin/env bash
# Installs torch, transformers, Accelerate, DeepSpeed, Lightning, Ray and JAX, all for CPUs, and prints the virtual environment
# that holds them. Takes 2 to 5 minutes on two cores and 1.9 GB the first time; then it is kept in
# ${XDG_CACHE_HOME:-~/.cache}/hpclaunch-tests, under a name made of all that it depends on. Needs g++ and Python's
# headers; PYTHON names the interpreter, 3.11 or newer.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
python=$(command -v "${PYTHON:-python3}")
# DeepSpeed's reduction in shared memory is built for this very processor, as DeepSpeed itself does at first use.
processor=$(grep -m 1 -E '^(flags|Features)' /proc/cpuinfo)
made_of=$(printf '%s\n' "$("$python" -VV)" "$("$python" -c 'import sys; print(sys.base_prefix)')" \
    "$(g++ --version)" "$processor" | cat - "$here/requirements.txt" "${BASH_SOURCE[0]}" | sha256sum)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hpclaunch-tests
venv=$cache/frameworks-${made_of:0:12}
mkdir -p "$cache"

# Its scripts know where they are, so it is made in its own place; the file "built" comes last. Of two builds
# at once the second waits.
exec 9>"$venv.lock"
flock 9
if [[ -e $venv/built ]]; then
    printf '%s\n' "$venv"
    exit
fi
rm -rf -- "$venv"
exec 3>&2
trap 'tail -n 30 "$venv.log" >&3; echo "installing the frameworks failed; all of its log is $venv.log" >&3' ERR
{
    "$python" -m venv "$venv"
    install=("$venv/bin/pip" install --quiet --disable-pip-version-check)
    grep -v '^deepspeed==' "$here/requirements.txt" | "${install[@]}" -r /dev/stdin
    # Its build needs torch; without the one kernel each job with its own cache would compile it for a minute.
    PATH=$venv/bin:$PATH DS_ACCELERATOR=cpu DS_BUILD_OPS=0 DS_BUILD_SHM_COMM=1 "${install[@]}" \
        --no-build-isolation --no-cache-dir --no-deps "$(grep '^deepspeed==' "$here/requirements.txt")"
    "$venv/bin/pip" check --disable-pip-version-check
} </dev/null >"$venv.log" 2>&1
touch "$venv/built"
printf '%s\n' "$venv"
