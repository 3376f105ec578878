# shellcheck shell=bash
# For .ci/run and .ci/long, which source this: stages with a name and a time, a folder that goes away at the
# end, the system's packages, and the commands that the README tells.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null
export CI=true # no test may be skipped

times=()
current=
scratch=$(mktemp -d)
trap finish EXIT

# stage NAME COMMAND...: ends the run where the command fails.
stage() {
    local start=$SECONDS
    current=$1
    printf '\n=== %s\n' "$current"
    "${@:2}"
    times+=("$(printf '%5d s  %s' $((SECONDS - start)) "$current")")
    printf '=== %s: %d s\n' "$current" $((SECONDS - start))
    current=
}

finish() {
    local status=$?
    rm -rf -- "$scratch"
    [[ -z $current ]] || times+=(" failed  $current")
    printf '\n=== times\n'
    printf '%s\n' "${times[@]}" "$(printf '%5d s  together' "$SECONDS")"
    exit "$status"
}

# The real Slurm, munge and sshd that the tests start; without them their tests fail, for none may be skipped.
# Or the packages that the named file lists.
system_packages() {
    local package packages missing=()
    mapfile -t packages < <(grep -Ev '^[[:space:]]*(#|$)' "${1:-tests/testbed/debian-packages.txt}")
    for package in "${packages[@]}"; do
        dpkg-query --show --showformat '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' ||
            missing+=("$package")
    done
    if ((${#missing[@]} == 0)); then
        echo "all are there: ${packages[*]}"
    elif ((EUID != 0)); then
        echo "missing, and only root can install them: ${missing[*]}"
    else
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
    fi
}

prepare_system() {
    if [[ -x $(command -v apt-get) && -x $(command -v dpkg-query) ]]; then
        stage 'system packages' system_packages
    fi
}

# as_the_readme_says VERB OPTION...: runs the README's own line, so that page and CI cannot drift apart.
as_the_readme_says() {
    local command
    command=$(grep -m 1 "^sh bootstrap.sh $1\$" README.md)
    bash -c "$command"' "$@"' "$@"
}

# Lists the Pythons that pyproject.toml names, on PATH or those of pyenv. One that is not here ends the run: what is not
# tested is not promised.
interpreters() {
    local version versions
    versions=$(sed -n 's/.*"Programming Language :: Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml)
    for version in $versions; do
        of_version "$version" 'import ensurepip, venv, sys; print(sys.executable)' || {
            echo "Python $version, a classifier in pyproject.toml, is not on this machine" >&2
            exit 1
        }
    done
}

# Those before 3.10 that are here, which some login nodes still have.
older_interpreters() {
    local version
    for version in 2.7 3.6 3.7 3.8 3.9; do
        of_version "$version" 'import sys; print(sys.executable)' || :
    done
}

# of_version VERSION CODE: what the first Python of this version prints that can run the code.
of_version() {
    local python
    for python in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if "$python" -c "$2" 2>/dev/null; then return; fi
    done
    return 1
}
