"""No scheduler: the script runs on the machine itself, detached; its state is read from /proc.

All of it is commands, as with any scheduler, so that it works through any host. A job is ``PID:STARTTIME``
of its script's shell (starttime: field 22 of /proc/PID/stat, man 5 proc), so that a PID which is used again
is not mistaken for it.
"""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from collections.abc import Sequence

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import UNBOUND, Launch, Launcher, Mpiexec
from hpclaunch.scheduler.scheduler_interface import JobStatus, Scheduler

CANCEL_GRACE_S = 10

# Sets f to the fields of /proc/$1/stat from the third on; the second, the program's name, may hold anything.
_FIELDS = r"""
set -f
fields() {
  local stat=
  { IFS= read -r -d '' stat < "/proc/$1/stat"; } 2>/dev/null
  f=(${stat##*) })
  [ ${#f[@]} -gt 19 ]
}
"""

# The shell prints its id, then becomes the script; its environment marks every process that it will start.
_SUBMIT = (
    _FIELDS
    + r"""
exec 3>&1 > "${1%/*}/out.log" 2>&1 < /dev/null || exit 1
fields $$ || exit 1
export HPCLAUNCH_LOCAL_JOB="$$:${f[19]}"
printf '%s\n' "$HPCLAUNCH_LOCAL_JOB" >&3
exec bash "$1" 3>&-
"""
)

_STATUS = (
    _FIELDS
    + r"""
for id; do
  fields "${id%%:*}" && [ "${f[19]}" = "${id##*:}" ] && [[ ${f[0]} != [ZXx] ]] && printf '%s\n' "$id"
done
exit 0
"""
)

# An MPI puts its ranks into their own process groups, a program may make its own session, and another may
# clear its environment: so the job's processes are those of its session and those that carry its mark.
_CANCEL = (
    _FIELDS
    + r"""
id=$1 grace=$2 leader=${1%%:*} ours= shown=
fields "$leader" && [ "${f[19]}" = "${id##*:}" ] && ours=1
members() {
  local stats marked p
  pids=()
  set +f
  stats=(/proc/[0-9]*)
  marked=$(grep -lszxF -e "HPCLAUNCH_LOCAL_JOB=$id" /proc/[0-9]*/environ | tr -cs 0-9 ' ')
  set -f
  # No process gets the number of a session while another one is in it.
  for p in $marked; do fields "$p" && [[ ${f[3]} == "$leader" ]] && ours=1; done
  for p in "${stats[@]#/proc/}"; do
    fields "$p" || continue
    [[ ${f[0]} == [ZXx] || $p == $$ ]] && continue
    if [[ ( $ours && ${f[3]} == "$leader" ) || " $marked " == *" $p "* ]]; then pids+=("$p"); fi
  done
  [ ${#pids[@]} -gt 0 ]
}
# Whether one of those still runs: to look through all of the machine's processes takes far longer.
found() {
  local p
  for p in "${pids[@]}"; do
    fields "$p" && [[ ${f[0]} != [ZXx] ]] && return
  done
  return 1
}
pids=()
for ((end = SECONDS + grace; SECONDS < end; )); do
  if ! found; then # at first, and of what ends the last may have started others
    members || exit 0
    [ "$shown" ] || echo "${pids[*]}"
    shown=1
    kill -TERM "${pids[@]}" 2>/dev/null
  fi
  sleep 0.05
done
for ((i = 0; i < 100; i++)); do
  members || exit 0
  kill -KILL "${pids[@]}" 2>/dev/null
  sleep 0.05
done
members || exit 0
echo "processes that cannot be killed: ${pids[*]}" >&2
exit 1
"""
)


class LocalScheduler(Scheduler, frozen=True, kw_only=True):
    """Jobs of the machine itself."""

    def submit_command(self, script: str) -> tuple[str, ...]:
        """Start ``bash SCRIPT`` in its own session, so that it outlives the terminal."""
        return ("setsid", "--fork", "bash", "-c", _SUBMIT, "hpclaunch-submit", script)

    def parse_submit(self, answer: CommandResult) -> str:
        """Return ``PID:STARTTIME`` of the script's shell."""
        pid, colon, start = answer.stdout.strip().partition(":")
        if answer.exit_code == 0 and colon and pid.isdigit() and start.isdigit():
            return f"{pid}:{start}"
        raise RefusedError(f"the job could not be started: {answer.stderr.strip() or 'no reason given'}")

    def status_commands(self, source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return one command that prints which of the jobs run."""
        return (("bash", "-c", _STATUS, "hpclaunch-status", *ids),)

    def parse_status(self, source: str, ids: Sequence[str], answer: CommandResult) -> dict[str, JobStatus]:
        """Return those that run; of those that do not, only their exit file knows more."""
        if answer.exit_code != 0:
            raise RefusedError(f"/proc could not be read: {answer.stderr.strip()}")
        return {line: JobStatus(state="running") for line in answer.stdout.split() if line in ids}

    def cancel_command(self, scheduler_id: str) -> tuple[str, ...]:
        """Return the command that sends SIGTERM to all the job's processes, waits, and kills what is left."""
        return ("bash", "-c", _CANCEL, "hpclaunch-cancel", scheduler_id, str(CANCEL_GRACE_S))

    def parse_cancel(self, answer: CommandResult) -> None:
        """Raise RefusedError where processes are left."""
        if answer.exit_code != 0:
            raise RefusedError(f"the job could not be cancelled: {answer.stderr.strip()}")


# Open MPI counts cores and refuses root; MPICH's hydra does neither and ignores these.
_HERE = (
    UNBOUND,
    Line(
        text="export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"
        " OMPI_MCA_rmaps_base_oversubscribe=1",
        reason="Open MPI (5, and 4) must not count cores: the plan did",
    ),
    Line(
        text='[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1',
        reason="Open MPI refuses root, who is the only user in many containers",
    ),
)


class Direct(Launcher, frozen=True, kw_only=True):
    """The ranks as processes of a shell: they need no MPI, and meet at MASTER_ADDR or not at all."""

    name: str = "direct"
    rank: str = "$HPCLAUNCH_RANK"
    local_rank: str = "$HPCLAUNCH_RANK"
    text_file: str | None = "start_ranks.sh"
    starts_mpi: bool = False

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks."""
        return ("bash", "-c", '"$start_ranks"', "start_ranks", str(launch.tasks))

    def one_per_node(self, nodes: int) -> tuple[str, ...]:
        """Start it in the job's own shell: there is one node."""
        return ()


SCHEDULER = LocalScheduler(
    kind="local",
    title="this machine",
    submit_program="setsid",
    template="local.sh.j2",
    launchers=(
        Mpiexec(shell_lines=_HERE, session_file="mpi_session.sh", without_mpi="direct"),
        Direct(),
    ),
    job_number="$$",
    submit_folder="$PWD",
    port_number="$$",
    first_node="MASTER_ADDR=127.0.0.1",
    node_names="echo localhost",
    id_pattern=r"\d+:\d+",
    starts_at_once=True,
    poll_s=(0.05, 0.5),
    status_sources=("proc",),
)
