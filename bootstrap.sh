#!/bin/sh
# From a fresh checkout to a trained model, or to the tests, in one line:
#   sh bootstrap.sh mnist [more options of hpclaunch submit] [-- options of the training]
#   sh bootstrap.sh tests [options of pytest]
# Makes .venv beside this file when it is missing, half-made or out of date. Needs python3 and a package index.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
venv=$root/.venv
state=$venv/bootstrap-state
log=$venv/bootstrap.log

die() {
    printf 'bootstrap: %s\n' "$@" >&2
    exit 1
}

# Prints "good 3.11.2", or what this interpreter lacks: "old 3.9.18", "no-venv 3.11.2".
probe='
import sys
version = "%d.%d.%d" % sys.version_info[:3]
try:
    import ensurepip, venv
    verdict = "good"
except ImportError:
    verdict = "no-venv"
print("old" if sys.version_info < (3, 10) else verdict, version)
'

# Ends: no Python here is new enough, in the words of $1. Names a way to one: at a site of the table its module.
no_python() {
    host=$(uname -n)
    cluster=${SLURM_CLUSTER_NAME-$(scontrol show config 2>/dev/null | sed -n 's/^ClusterName *= *//p')}
    while IFS='	' read -r sign pattern commands; do
        case $sign in cluster) value=$cluster ;; *) value=$host ;; esac
        if [ -n "$pattern" ] && printf '%s\n' "$value" | grep -Eiqx -- "$pattern"; then
            die "$1" "The profile of this site loads one, then run bootstrap.sh again:" "    $commands"
        fi
    done <<TABLE
$(cat "$root/packaging/python_modules.tsv" 2>/dev/null)
TABLE
    die "$1" "On a cluster a module often has one: module avail python, module load NAME." \
        "Without one, uv (https://docs.astral.sh/uv) brings it into ~/.local/bin: uv python install 3.12" ${2:+"$2"}
}

# Sets $python to an interpreter that is new enough and can make a virtual environment.
find_python() {
    old='' without_venv=''
    for python in python3 python3.13 python3.12 python3.11 python3.10; do
        answer=$("$python" -c "$probe" 2>/dev/null) || continue
        case $answer in
            good*) return ;;
            old*) old=${old:-"$(command -v "$python"), version ${answer#* }"} ;;
            *) without_venv=${without_venv:-${answer#* }} ;;
        esac
    done
    if [ -n "$without_venv" ]; then
        package=python${without_venv%.*}-venv
        die "Python $without_venv cannot make virtual environments: its modules venv and ensurepip are missing." \
            "On Debian and Ubuntu they are in the package $package (python3-venv for the system's own Python):" \
            "    apt-get install $package"
    elif [ -n "$old" ]; then
        no_python "Python 3.10 or newer is needed; found only $old."
    fi
    no_python "no python3 on PATH. Python 3.10 or newer is needed." \
        "On Debian and Ubuntu: apt-get install python3 python3-venv"
}

# Ends with the reason why pip failed, as short as it can be told from its log.
explain_failure() {
    if grep -qE 'connection broken by|NewConnectionError|ConnectTimeout|ReadTimeout|name resolution|Network is unreachable' "$log"; then
        die "the package index could not be reached; is this machine on the network?" \
            "A proxy is named with HTTPS_PROXY, a mirror with PIP_INDEX_URL. pip said:" \
            "$(grep -E 'connection broken by|Error' "$log" | head -n 1)"
    fi
    tail -n 20 "$log" >&2
    die "installing into $venv failed; the end of pip's log stands above, all of it is in $log"
}

# Makes or completes $venv with the extras named in $1. $state says what it holds; "making" marks a half-made one.
set_up() {
    wanted="$(cat "$root/pyproject.toml" "$root/.ci/constraints.txt" | cksum) $root"
    exec 9<"$root/bootstrap.sh"
    if command -v flock >/dev/null; then flock 9; fi # two runs at once: the second waits for the first
    found=$(cat "$state" 2>/dev/null) || found=''
    case $found in
        "$1 $wanted" | "all,dev $wanted")
            if "$venv/bin/python" -c 'import hpclaunch' 2>/dev/null; then exec 9<&- && return; fi
            ;;
    esac
    printf 'bootstrap: installing hpclaunch[%s] into %s; this takes a minute\n' "$1" "$venv" >&2
    case $found in
        '' | *" $root") "$venv/bin/python" -m pip --version >/dev/null 2>&1 || found=making ;;
        *) found=making ;; # half-made, or moved here from elsewhere: its scripts point to the old place
    esac
    if [ "$found" = making ]; then
        find_python
        rm -rf -- "$venv"
        problem=$("$python" -m venv "$venv" 2>&1) || die "cannot make $venv:" "$problem"
    fi
    echo making >"$state"
    # --no-compile: Python compiles what is used, when it is first used: a part of these packages.
    PIP_ROOT_USER_ACTION=ignore "$venv/bin/python" -m pip install --quiet --no-compile --no-input --no-user \
        --disable-pip-version-check -c "$root/.ci/constraints.txt" \
        -e "${root}[$1]" >"$log" 2>&1 </dev/null || explain_failure
    printf '%s %s' "$1" "$wanted" >"$state"
    exec 9<&-
}

# Runs one check and keeps going, so that one run tells everything that is wrong.
failed=''
check() {
    start=$(date +%s)
    "$@" || failed="$failed $1"
    printf '== %s: %s s\n' "$*" "$(($(date +%s) - start))" >&2
}

# Runs the tests, and the few that failed once more, alone and named: beside three other workers a real Slurm or Ray
# may be slower than it allows itself. What is wrong fails again.
run_pytest() {
    # Two cores are kept busy by four workers, since many tests wait; each takes the next module when it is free.
    pytest --cache-clear -n 4 --dist loadgroup --durations=20 "$@" && return
    [ $? -eq 1 ] || return
    python - <<'END' >"$venv/failed-tests" || return
import json, re
with open(".pytest_cache/v/cache/lastfailed") as file:
    failed = [re.sub(r"@[\w.-]+$", "", name) for name in json.load(file)]
if len(failed) > 5:
    raise SystemExit("%d tests failed" % len(failed))
print("\n".join(failed))
END
    printf '== these failed and run once more, alone:\n%s\n' "$(cat "$venv/failed-tests")" >&2
    pytest "@$venv/failed-tests"
}

run_tests() {
    cd -- "$root"
    check ruff check .
    check ruff format --check .
    types=$venv/mypy.log
    mypy >"$types" 2>&1 & # on one core, while the tests begin
    mypy=$!
    # The first time pytest compiles the tests: once here, or else each worker would.
    [ -d tests/__pycache__ ] || pytest --collect-only -q >"$venv/collect.log" 2>&1 || : # an error is shown below
    check run_pytest "$@"
    wait "$mypy" || failed="$failed mypy"
    cat "$types"
    [ -z "$failed" ] || die "failed:$failed"
}

use_venv() {
    PATH=$venv/bin:$PATH
    VIRTUAL_ENV=$venv
    export PATH VIRTUAL_ENV
}

verb=${1-}
[ $# -eq 0 ] || shift
case $verb in
    mnist)
        set_up all
        use_venv
        exec hpclaunch submit --site local --tasks 2 mnist "$@"
        ;;
    tests)
        set_up all,dev
        use_venv
        run_tests "$@"
        ;;
    *)
        sed -n '2,5s/^# //p' "$0" >&2
        exit 2
        ;;
esac
