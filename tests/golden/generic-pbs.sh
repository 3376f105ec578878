#!/bin/bash -l
#PBS -N mnist
# nodes, and what each of them must be
#PBS -l select=1:ncpus=1:mpiprocs=1
# each chunk on another node, shared with no other job
#PBS -l place=scatter:excl
#PBS -l walltime=00:30:00
# stderr goes where stdout goes
#PBS -j oe

# Written by hpclaunch 0.1.0 for generic-pbs: Any cluster with PBS Professional or OpenPBS about which nothing
# else is known, facts read 2026-11-20.
# 1 node x 1 rank = 1 rank.
# No binding is planned: the NUMA nodes are not described, or --binding off.

set -eo pipefail
export HPCLAUNCH_JOB_ID="${PBS_JOBID%%[!0-9]*}"
export HPCLAUNCH_JOB_FOLDER="$PBS_O_WORKDIR/hpclaunch-${PBS_JOBID%%[!0-9]*}"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

cd "$PBS_O_WORKDIR"  # PBS starts a job in the home folder
export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
# Open MPI (5, and 4) must not bind: a rank binds itself where cores are planned for it
export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none
read -r MASTER_ADDR < "$PBS_NODEFILE"  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + ${PBS_JOBID%%[!0-9]*} % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=1  # threads for each rank: --cpus-per-task
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?mpiexec gave no rank}}"  # the rank
export LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:?mpiexec gave no rank}}"  # the rank
export WORLD_SIZE=1  # and the sizes, for torch.distributed and others
HPCLAUNCH_RANK

mpiexec -n 1 -machinefile "$PBS_NODEFILE" \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'
