#!/bin/bash

# Written by hpclaunch 0.1.0 for local: This machine - ranks on its own cores, measured when a job starts; by
# the installed MPI's mpiexec where they need an MPI.
# 1 node x 2 ranks = 2 ranks.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0  NUMA node 0
#   rank 1: CPUs 1  NUMA node 0

set -eo pipefail
export HPCLAUNCH_JOB_ID="$$"
export HPCLAUNCH_JOB_FOLDER="$PWD/hpclaunch-$$"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: --stage needs --dry-run --save DIR" >&2; exit 1; }

export PATH=/opt/env/bin:"$PATH"  # the Python and MPI of this hpclaunch, first
# Open MPI (5, and 4) must not bind: a rank binds itself where cores are planned for it
export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none
# Open MPI (5, and 4) must not count cores: the plan did
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_rmaps_base_oversubscribe=1
# Open MPI refuses root, who is the only user in many containers
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
MASTER_ADDR=127.0.0.1  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + $$ % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=1  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Data are copied to storage of the nodes before the ranks start: source and target.
hpclaunch_stage "${TMPDIR:-/tmp}" \
  data data

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?mpiexec gave no rank}}"  # the rank
export LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:?mpiexec gave no rank}}"  # the rank
export WORLD_SIZE=2  # and the sizes, for torch.distributed and others
cpus=(0 1)  # CPUs planned for each local rank
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null  # bind this shell, which becomes the program (man taskset)
HPCLAUNCH_RANK

mpiexec -n 2 \
  bash -c "$rank_start$rank_end" rank \
  /opt/env/bin/python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'
