# shellcheck shell=bash
# Start N ranks on this machine, without an MPI:  bash -c "$start_ranks" start_ranks N WORDS...
#
# Each rank runs WORDS as a process group of its own, with its number in HPCLAUNCH_RANK and nothing on stdin. The exit
# status is that of the first rank that failed; the others are then ended: SIGTERM, within 3 s SIGKILL. SIGTERM, SIGINT and
# SIGUSR1 go on to all of them. bash 4.1 has no wait -n: ranks are looked at each 0.005 s, later 0.1 s (tried: 4.2 to 5.2).
hpclaunch_groups=() hpclaunch_running=() hpclaunch_failed= hpclaunch_looks=0
hpclaunch_count=$1
shift

signal_ranks() {
  local hpclaunch_group
  for hpclaunch_group in "${hpclaunch_groups[@]}"; do kill -s "$1" -- "-$hpclaunch_group" 2> /dev/null; done
}
end_ranks() {  # the exit status
  [ -z "$hpclaunch_failed" ] || return 0
  hpclaunch_failed=$1 hpclaunch_deadline=$((SECONDS + 3))
  signal_ranks TERM
}
trap 'signal_ranks USR1' USR1
trap 'end_ranks 143' TERM
trap 'end_ranks 130' INT

exec {hpclaunch_stderr}>&2 2> /dev/null  # with set -m bash writes there of a rank that has ended already
set -m  # each is a process group
for ((hpclaunch_rank = 0; hpclaunch_rank < hpclaunch_count; hpclaunch_rank++)); do
  HPCLAUNCH_RANK=$hpclaunch_rank "$@" < /dev/null 2>&"$hpclaunch_stderr" {hpclaunch_stderr}>&- &
  hpclaunch_groups[hpclaunch_rank]=$! hpclaunch_running[hpclaunch_rank]=$!
done
set +m
exec 2>&"$hpclaunch_stderr" {hpclaunch_stderr}>&-
exec {hpclaunch_never}<> <(:)  # a pipe in which nothing arrives
while [ "${hpclaunch_running[*]}" ]; do
  for hpclaunch_rank in "${!hpclaunch_running[@]}"; do
    kill -0 "${hpclaunch_running[hpclaunch_rank]}" 2> /dev/null && continue
    wait "${hpclaunch_running[hpclaunch_rank]}" 2> /dev/null
    hpclaunch_status=$?
    unset "hpclaunch_running[hpclaunch_rank]"
    [ -z "$hpclaunch_failed" ] || continue
    if [ "$hpclaunch_status" = 0 ]; then
      unset "hpclaunch_groups[hpclaunch_rank]"
    else
      echo "$(< /proc/sys/kernel/hostname): rank $hpclaunch_rank exited with code $hpclaunch_status" >&2
      end_ranks "$hpclaunch_status"
    fi
  done
  [ -z "$hpclaunch_failed" ] || [ "$SECONDS" -lt "$hpclaunch_deadline" ] || signal_ranks KILL
  if ((hpclaunch_looks++ < 40)); then hpclaunch_pause=0.005; else hpclaunch_pause=0.1; fi
  read -rt "$hpclaunch_pause" -u "$hpclaunch_never"
done
[ -z "$hpclaunch_failed" ] || signal_ranks KILL  # what those ranks have left
exit "${hpclaunch_failed:-0}"
