#!/bin/bash -l
#PBS -N mnist
#PBS -P grpname
# the first queue that fits: up to 128 nodes, 168:00:00
#PBS -q rt_HF
# nodes, and what each of them must be
#PBS -l select=4:mpiprocs=8
# each chunk on another node, shared with no other job
#PBS -l place=scatter:excl
#PBS -l walltime=00:30:00
# stderr goes where stdout goes
#PBS -j oe

# Written by hpclaunch 0.1.0 for abci-3: ABCI 3.0 at AIST, Japan (8 H200 per node, InfiniBand NDR200), facts
# read 2026-11-23 to 2026-11-24.
# 4 nodes x 8 ranks = 32 ranks.
# Framework: torch; named in the request.
# Each rank binds itself at its start, to up to 12 cores near its GPU, as /sys of its node shows them
# (bind_here.sh).

set -eo pipefail
export HPCLAUNCH_JOB_ID="${PBS_JOBID%%[!0-9]*}"
export HPCLAUNCH_JOB_FOLDER="$PBS_O_WORKDIR/hpclaunch-${PBS_JOBID%%[!0-9]*}"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

cd "$PBS_O_WORKDIR"  # PBS starts a job in the home folder
source /etc/profile.d/modules.sh  # the module command [1]
module load hpcx/2.20  # the Open MPI that starts the ranks [2]
source "$HOME/venv/bin/activate"  # the virtual environment, over the Python of the modules
# Open MPI (5, and 4) must not bind: a rank binds itself where cores are planned for it
export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none
# variables that Open MPI hands on to the ranks of other nodes, which it does only where they are named [3]
export OMPI_MCA_mca_base_env_list="PATH;LD_LIBRARY_PATH;PYTHONPATH;VIRTUAL_ENV;MASTER_ADDR;MASTER_PORT;OMP_NUM_THREADS;HPCLAUNCH_JOB_ID;HPCLAUNCH_JOB_FOLDER;HPCLAUNCH_FILES"
read -r MASTER_ADDR < "$PBS_NODEFILE"  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + ${PBS_JOBID%%[!0-9]*} % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=12  # threads for each rank: its share of the node's cores
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?mpiexec gave no rank}}"  # the rank
export LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:?mpiexec gave no rank}}"  # the rank
export WORLD_SIZE=32 LOCAL_WORLD_SIZE=8 GROUP_RANK=$((RANK / 8))  # and the sizes, for torch.distributed
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

mpiexec -n 32 -machinefile "$PBS_NODEFILE" \
  bash -c "$rank_start$rank_end" rank \
  python train.py

# Sources:
# [1] https://docs.abci.ai/v3/en/job-execution, read 2026-11-24
# [2] https://docs.abci.ai/v3/en/mpi, read 2026-11-24
# [3] https://www.open-mpi.org/doc/v4.1/man1/mpirun.1.php, read 2026-11-24, unverified
