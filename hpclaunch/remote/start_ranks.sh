# shellcheck shell=bash
# Start N ranks on this machine, without an MPI:  bash -c "$start_ranks" start_ranks N WORDS...
#
# Each rank runs WORDS as a process group of its own, with its number in HPCLAUNCH_RANK and nothing on stdin. The exit
# status is that of the first rank that failed; the others are then ended: SIGTERM, within 3 s SIGKILL. SIGTERM, SIGINT and
# SIGUSR1 go on to all of them. bash 4.1 has no wait -n, so the ranks are looked at every 0.1 s (tried: 4.2, 4.4, 5.2).
groups=() running=() failed=
count=$1
shift

signal_ranks() {
  local group
  for group in "${groups[@]}"; do kill -s "$1" -- "-$group" 2> /dev/null; done
}
end_ranks() {  # the exit status
  [ -z "$failed" ] || return 0
  failed=$1 deadline=$((SECONDS + 3))
  signal_ranks TERM
}
trap 'signal_ranks USR1' USR1
trap 'end_ranks 143' TERM
trap 'end_ranks 130' INT

set -m  # each is a process group
for ((rank = 0; rank < count; rank++)); do
  HPCLAUNCH_RANK=$rank "$@" < /dev/null &
  groups[rank]=$! running[rank]=$!
done
set +m
exec {never}<> <(:)  # a pipe in which nothing arrives
while [ "${running[*]}" ]; do
  for rank in "${!running[@]}"; do
    kill -0 "${running[rank]}" 2> /dev/null && continue
    wait "${running[rank]}" 2> /dev/null
    status=$?
    unset "running[rank]"
    [ -z "$failed" ] || continue
    if [ "$status" = 0 ]; then
      unset "groups[rank]"
    else
      echo "$HOSTNAME: rank $rank exited with code $status" >&2
      end_ranks "$status"
    fi
  done
  [ -z "$failed" ] || [ "$SECONDS" -lt "$deadline" ] || signal_ranks KILL
  read -rt 0.1 -u "$never"
done
[ -z "$failed" ] || signal_ranks KILL  # what those ranks have left
exit "${failed:-0}"
