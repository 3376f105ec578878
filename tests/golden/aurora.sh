#!/bin/bash -l
#PBS -N mnist
#PBS -A MyProject
# the first queue that fits: up to 2 nodes, 01:00:00
#PBS -q debug
# nodes, and what each of them must be
#PBS -l select=1
#PBS -l walltime=00:30:00
# stderr goes where stdout goes
#PBS -j oe
# file systems the job needs (home, flare); a job that names none is refused [1]
#PBS -l filesystems=home:flare
# each chunk on its own node [1]
#PBS -l place=scatter

# Written by hpclaunch 0.1.0 for aurora: Aurora at ALCF, Argonne (HPE Cray EX, 6 Data Center GPU Max per node
# as 12 tiles, Slingshot-11), facts read 2026-11-20 to 2026-11-23.
# 1 node x 12 ranks = 12 ranks.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 1-8  GPU 0  NUMA node 0
#   rank 1: CPUs 9-16  GPU 1  NUMA node 0
#   rank 2: CPUs 17-24  GPU 2  NUMA node 0
#   rank 3: CPUs 25-32  GPU 3  NUMA node 0
#   rank 4: CPUs 33-40  GPU 4  NUMA node 0
#   rank 5: CPUs 41-48  GPU 5  NUMA node 0
#   rank 6: CPUs 53-60  GPU 6  NUMA node 1
#   rank 7: CPUs 61-68  GPU 7  NUMA node 1
#   rank 8: CPUs 69-76  GPU 8  NUMA node 1
#   rank 9: CPUs 77-84  GPU 9  NUMA node 1
#   rank 10: CPUs 85-92  GPU 10  NUMA node 1
#   rank 11: CPUs 93-100  GPU 11  NUMA node 1

set -eo pipefail
export HPCLAUNCH_JOB_ID="${PBS_JOBID%%[!0-9]*}"
export HPCLAUNCH_JOB_FOLDER="$PBS_O_WORKDIR/hpclaunch-${PBS_JOBID%%[!0-9]*}"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

cd "$PBS_O_WORKDIR"  # PBS starts a job in the home folder
export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
# the first that is there
for module in frameworks/2025.3.1 frameworks; do module is-avail "$module" && break; done
[ "$module" = frameworks/2025.3.1 ] || echo "hpclaunch: no frameworks/2025.3.1, but $module" >&2
module load "$module"  # the site's Python with torch, DeepSpeed and mpi4py [2]
export CCL_PROCESS_LAUNCHER=pmix  # oneCCL finds its ranks through PALS' PMIx [3]
export CCL_ATL_TRANSPORT=mpi  # oneCCL's messages go over MPI, and so over Slingshot [3]
export CCL_KVS_MODE=mpi  # oneCCL exchanges addresses over MPI [3]
export FI_MR_CACHE_MONITOR=userfaultfd  # libfabric's default memory monitor can deadlock [3]
export ZE_FLAT_DEVICE_HIERARCHY=FLAT  # each tile is a separate device, so ZE_AFFINITY_MASK counts tiles [2]
export TMPDIR=/tmp  # a longer one breaks the sockets of data loaders (AF_UNIX path too long) [4]
# compute nodes reach the internet through the proxy only [1]
export http_proxy=http://proxy.alcf.anl.gov:3128
export https_proxy=http://proxy.alcf.anl.gov:3128
read -r MASTER_ADDR < "$PBS_NODEFILE"  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + ${PBS_JOBID%%[!0-9]*} % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=8  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${PALS_RANKID:-${PMI_RANK:?pals gave no rank}}"  # the rank
export LOCAL_RANK="${PALS_LOCAL_RANKID:-${PMI_LOCAL_RANK:?pals gave no rank}}"  # the rank
export WORLD_SIZE=12  # and the sizes, for torch.distributed and others
gpus=(0 1 2 3 4 5 6 7 8 9 10 11)  # GPUs of each local rank, nearest to its cores
export ZE_AFFINITY_MASK="${gpus[LOCAL_RANK]}"  # this rank sees only its own
HPCLAUNCH_RANK

mpiexec -n 12 --ppn 12 --cpu-bind list:1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100 \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'

# Sources:
# [1] https://docs.alcf.anl.gov/aurora/running-jobs-aurora/, read 2026-11-23
# [2] https://docs.alcf.anl.gov/aurora/data-science/frameworks/pytorch/, read 2026-11-23
# [3] https://docs.alcf.anl.gov/aurora/data-science/frameworks/oneCCL/, read 2026-11-23
# [4] https://docs.alcf.anl.gov/aurora/known-issues/, read 2026-11-23
