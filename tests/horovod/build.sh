#!/usr/bin/env bash
# Builds Horovod from its source distribution and prints the virtual environment that holds it:
#   tests/horovod/build.sh [torch | torch-gloo | torch-mpi | tensorflow]
# torch and tensorflow have MPI and Gloo. Takes 3 to 5 minutes on two cores the first time; then it is kept in
# ${XDG_CACHE_HOME:-~/.cache}/hpclaunch-tests, under a name made of all that it depends on. Needs an Open MPI 4
# with its headers (5 has no C++ bindings), g++, cmake and make; PYTHON names the interpreter.
set -euo pipefail

horovod=0.28.1 torch=2.13.0 tensorflow=2.12.0 # the newest TensorFlow that this Horovod was tested with
variant=${1:-torch}
build=(MAKEFLAGS=-j2 HOROVOD_WITHOUT_MXNET=1)
case $variant in
    torch) build+=(HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1) ;;
    torch-gloo) build+=(HOROVOD_WITHOUT_MPI=1 HOROVOD_WITH_GLOO=1) ;;
    torch-mpi) build+=(HOROVOD_WITH_MPI=1 HOROVOD_WITHOUT_GLOO=1) ;;
    tensorflow) build+=(HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1) ;;
    *) echo "unknown: $variant; known are torch, torch-gloo, torch-mpi, tensorflow" >&2 && exit 2 ;;
esac
case $variant in
    torch*)
        framework=torch==$torch
        build+=(HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1)
        ;;
    tensorflow)
        framework=tensorflow-cpu==$tensorflow
        build+=(HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITH_TENSORFLOW=1)
        ;;
esac

mpi=$(mpicxx --showme:version) # "mpicxx: Open MPI 4.1.4 (Language: C++)"
[[ $mpi == *'Open MPI 4.'* ]] || { echo "$(command -v mpicxx) is not of an Open MPI 4: $mpi" >&2 && exit 1; }
python=$(command -v "${PYTHON:-python3}")
made_of=$(printf '%s\n' "$mpi" "$("$python" -VV)" "$("$python" -c 'import sys; print(sys.base_prefix)')" |
    cat - "${BASH_SOURCE[0]}" | sha256sum)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hpclaunch-tests
venv=$cache/horovod-$horovod-$variant-${made_of:0:12}
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
trap 'tail -n 30 "$venv.log" >&3; echo "building Horovod failed; all of its log is $venv.log" >&3' ERR
{
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$framework" numpy mpi4py wheel 'setuptools<81'
    # torch's headers need C++17 since 2.1, Horovod's build asks for C++14 in several places.
    # shellcheck disable=SC2016  # $@ is the wrapper's own
    printf '%s\n' '#!/bin/bash' 'exec g++ "${@/#-std=c++14/-std=c++17}"' >"$venv/g++17"
    chmod +x "$venv/g++17"
    [[ $variant == tensorflow ]] || build+=("CXX=$venv/g++17")
    env "${build[@]}" "$venv/bin/pip" install --disable-pip-version-check --no-build-isolation --no-cache-dir \
        "horovod==$horovod"
    # The MPI that built it must start it, also where another one is first on PATH. Links, no scripts: called by
    # its full name Open MPI would put its own folder before all others on the ranks' PATH.
    ln -s "$(dirname "$(command -v mpicxx)")"/mpi{exec,run} "$venv/bin"
} </dev/null >"$venv.log" 2>&1
touch "$venv/built"
printf '%s\n' "$venv"
