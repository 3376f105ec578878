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
