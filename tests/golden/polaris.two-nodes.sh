#!/bin/bash -l
#PBS -N mnist
#PBS -A MyProject
# the first queue that fits: up to 2 nodes, 01:00:00
#PBS -q debug
# nodes, and what each of them must be
#PBS -l select=2:system=polaris
#PBS -l walltime=00:30:00
# stderr goes where stdout goes
#PBS -j oe
# each chunk on its own node [1]
#PBS -l place=scatter
# given with --directive
#PBS -l filesystems=home

# Written by hpclaunch 0.1.0 for polaris: Polaris at ALCF, Argonne (HPE Apollo, 4 A100 40 GB per node,
# Slingshot-11), facts read 2026-11-20 to 2026-11-23.
# 2 nodes x 4 ranks = 8 ranks.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 24-31  GPU 0  NUMA node 3
#   rank 1: CPUs 16-23  GPU 1  NUMA node 2
#   rank 2: CPUs 8-15  GPU 2  NUMA node 1
#   rank 3: CPUs 0-7  GPU 3  NUMA node 0

set -eo pipefail
export HPCLAUNCH_JOB_ID="${PBS_JOBID%%[!0-9]*}"
export HPCLAUNCH_JOB_FOLDER="$PBS_O_WORKDIR/hpclaunch-${PBS_JOBID%%[!0-9]*}"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

cd "$PBS_O_WORKDIR"  # PBS starts a job in the home folder
export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
module use /soft/modulefiles  # the folder of ALCF's own modules [2]
for module in conda/2025-09-25 conda; do module is-avail "$module" && break; done  # the first that is there
[ "$module" = conda/2025-09-25 ] || echo "hpclaunch: no conda/2025-09-25, but $module" >&2
module load "$module"  # Python with torch, TensorFlow, JAX, DeepSpeed and mpi4py for Cray MPICH [2]
conda activate base  # the environment of that module [2]
export NCCL_NET_GDR_LEVEL=PHB  # NICs read GPU memory directly where one host bridge has both [3]
export NCCL_CROSS_NIC=1  # a ring may enter a node by one NIC and leave it by another [3]
export NCCL_COLLNET_ENABLE=1  # collectives may use the network's own algorithms [3]
export FI_CXI_DISABLE_HOST_REGISTER=1  # no host memory registered with CUDA, which can deadlock [3]
export FI_MR_CACHE_MONITOR=userfaultfd  # libfabric's default, memhooks, can deadlock with NCCL [3]
export FI_CXI_DEFAULT_CQ_SIZE=131072  # completion queues large enough for collectives over many ranks [3]
# NCCL's plugin for Slingshot and the hwloc it needs [3]
export LD_LIBRARY_PATH="/soft/libraries/aws-ofi-nccl/v1.9.1-aws/lib:/soft/libraries/hwloc/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export NCCL_NET="AWS Libfabric"  # fail where the Slingshot plugin cannot be loaded, no fall back to TCP [3]
# compute nodes reach the internet through the proxy only [1]
export http_proxy=http://proxy.alcf.anl.gov:3128
export https_proxy=http://proxy.alcf.anl.gov:3128
export TMPDIR=/tmp  # a longer one breaks the sockets of data loaders (AF_UNIX path too long) [4]
read -r MASTER_ADDR < "$PBS_NODEFILE"  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + ${PBS_JOBID%%[!0-9]*} % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=8  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${PALS_RANKID:-${PMI_RANK:?pals gave no rank}}"  # the rank
export LOCAL_RANK="${PALS_LOCAL_RANKID:-${PMI_LOCAL_RANK:?pals gave no rank}}"  # the rank
export WORLD_SIZE=8  # and the sizes, for torch.distributed and others
gpus=(0 1 2 3)  # GPUs of each local rank, nearest to its cores
export CUDA_VISIBLE_DEVICES="${gpus[LOCAL_RANK]}"  # this rank sees only its own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

mpiexec -n 8 --ppn 4 --cpu-bind list:24-31:16-23:8-15:0-7 \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'

# Sources:
# [1] https://docs.alcf.anl.gov/polaris/running-jobs/, read 2026-11-23
# [2] https://docs.alcf.anl.gov/polaris/system-updates/, read 2026-11-23
# [3] https://docs.alcf.anl.gov/polaris/applications-and-libraries/libraries/nccl/, read 2026-11-23
# [4] https://docs.alcf.anl.gov/polaris/known-issues/, read 2026-11-23
