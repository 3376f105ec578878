#!/bin/bash

# Written by hpclaunch 0.1.0 for local: This machine - ranks on its own cores, measured when a job starts; by
# the installed MPI's mpiexec where they need an MPI.
# 1 node x 2 ranks = 2 ranks.
# Framework: torch; named in the request.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0  NUMA node 0
#   rank 1: CPUs 1  NUMA node 0

set -eo pipefail
export HPCLAUNCH_JOB_ID="$$"
export HPCLAUNCH_JOB_FOLDER="$PWD/hpclaunch-$$"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

export PATH=/opt/env/bin:"$PATH"  # the Python and MPI of this hpclaunch, first
MASTER_ADDR=127.0.0.1  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + $$ % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=1  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
# the rank
export RANK="${HPCLAUNCH_RANK:?direct gave no rank}" LOCAL_RANK="${HPCLAUNCH_RANK:?direct gave no rank}"
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 GROUP_RANK=$((RANK / 2))  # and the sizes, for torch.distributed
cpus=(0 1)  # CPUs planned for each local rank
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null  # bind this shell, which becomes the program (man taskset)
HPCLAUNCH_RANK

IFS= read -r -d '' start_ranks <<'HPCLAUNCH_TEXT' || :
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
HPCLAUNCH_TEXT

bash -c "$start_ranks" start_ranks 2 \
  bash -c "$rank_start$rank_end" rank \
  python3 train.py
