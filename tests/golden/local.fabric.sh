#!/bin/bash

# Written by hpclaunch 0.1.0 for local: This machine - ranks on its own cores, measured when a job starts; by
# the installed MPI's mpiexec where they need an MPI.
# 1 node x 2 ranks = 2 ranks, started on each node by fabric run.
# Framework: torch; named in the request.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0  NUMA node 0
#   rank 1: CPUs 1  NUMA node 0

set -eo pipefail
export HPCLAUNCH_JOB_ID="$$"
export HPCLAUNCH_JOB_FOLDER="$PWD/hpclaunch-$$"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

export PATH=/opt/env/bin:"$PATH"  # the Python and MPI of this hpclaunch, first
MASTER_ADDR=127.0.0.1  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + $$ % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=1  # threads for each rank: the cores it is bound to
export PYTHON_EXEC="$HPCLAUNCH_JOB_FOLDER/worker"  # workers start by this file, which binds them
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each worker that fabric run starts is a shell with these lines: the file "worker".
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
: "${RANK:?the worker has no rank}" "${LOCAL_RANK:?the worker has no rank}"  # its launcher's
IFS= read -r -d "" python < "/proc/$PPID/cmdline"; set -- "${python:-python}" "$@"  # the launcher's Python
unset PYTHON_EXEC "${!PET_@}"  # not for a torchrun that the program may start
cpus=(0 1)  # CPUs planned for each local rank
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null  # bind this shell, which becomes the program (man taskset)
HPCLAUNCH_RANK
install -m 700 /dev/stdin "$HPCLAUNCH_JOB_FOLDER/worker" <<< $'#!/bin/bash\n'"$rank_start$rank_end"

# On each node a shell with these lines starts fabric run.
IFS= read -r -d '' node_start <<'HPCLAUNCH_NODE' || :
# fabric run, with what the command leaves open
set -- "${@:1:2}" --devices=2 --num_nodes=1 --node_rank=0 --main_address="$MASTER_ADDR" \
  --main_port="$MASTER_PORT" "${@:3}"
exec -- "$@"
HPCLAUNCH_NODE

bash -c "$node_start" node \
  fabric run train.py
