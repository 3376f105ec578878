#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=g123  # the project that pays
#SBATCH --partition=normal  # the first partition that fits: up to any number of nodes, 1-00:00:00
#SBATCH --nodes=1  # nodes
#SBATCH --ntasks-per-node=4  # ranks on each node
#SBATCH --gpus-per-node=4  # GPUs of each node, visible to its ranks together
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job
#SBATCH --uenv=pytorch/v2.8.0:/user-environment  # mpi4py, software of the site [1]
#SBATCH --view=default  # mpi4py, software of the site [1]

# Written by hpclaunch 0.1.0 for santis: Santis, the climate and weather platform's cluster on Alps at CSCS (4
# GH200 per node), facts read 2026-11-20 to 2026-11-23.
# 1 node x 4 ranks = 4 ranks.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0-71  GPU 0  NUMA node 0
#   rank 1: CPUs 72-143  GPU 1  NUMA node 1
#   rank 2: CPUs 144-215  GPU 2  NUMA node 2
#   rank 3: CPUs 216-287  GPU 3  NUMA node 3

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
# LL128 gave wrong sums on this hardware (NVIDIA/nccl issue 2001), and is slower on Slingshot [2]
export NCCL_PROTO=^LL128
export FI_CXI_RDZV_THRESHOLD=0  # second guard against the wrong sums (no GDRCopy path), and against hangs [3]
export FI_CXI_RDZV_GET_MIN=0  # second guard against the wrong sums (no GDRCopy path), and against hangs [3]
export FI_CXI_RDZV_EAGER_SIZE=0  # against hangs - no eager messages [2]
export NCCL_NET_GDR_LEVEL=PHB  # NICs read GPU memory directly where one host bridge has both [2]
export NCCL_CROSS_NIC=1  # a ring may enter a node by one NIC and leave it by another [2]
export NCCL_NCHANNELS_PER_NET_PEER=4  # more channels for send and receive between two ranks [2]
export FI_CXI_DEFAULT_CQ_SIZE=131072  # completion queues large enough for collectives over many ranks [2]
export FI_CXI_DEFAULT_TX_SIZE=16384  # send queues large enough for collectives over many ranks [2]
export FI_CXI_DISABLE_HOST_REGISTER=1  # no host memory registered with CUDA, which can deadlock [2]
export FI_CXI_RX_MATCH_MODE=software  # message matching in software, whose lists do not become full [2]
export FI_MR_CACHE_MONITOR=userfaultfd  # libfabric's default, memhooks, can deadlock with NCCL [2]
unset NCCL_NET  # a job of one node has no Slingshot service, so forcing the plugin makes NCCL fail [4]
export MPICH_GPU_SUPPORT_ENABLED=0  # GPU-aware MPI together with NCCL in one program can deadlock [2]
export CUDA_CACHE_DISABLE=1  # a cache that ends with the job is of no use [2]
# Triton's cache in memory - many ranks that write it on a shared file system collide [1]
export TRITON_HOME="/dev/shm/$USER-triton"
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1  # a failed collective ends the rank, which would hang otherwise [2]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=72  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=4  # and the sizes, for torch.distributed and others
gpus=(0 1 2 3)  # GPUs of each local rank, nearest to its cores
export CUDA_VISIBLE_DEVICES="${gpus[LOCAL_RANK]}"  # this rank sees only its own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=mask_cpu:0xffffffffffffffffff,0xffffffffffffffffff000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000000000000000000000 \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'

# Sources:
# [1] https://docs.cscs.ch/software/ml/pytorch/, read 2026-11-23
# [2] https://docs.cscs.ch/software/communication/nccl/, read 2026-11-20
# [3] https://github.com/NVIDIA/nccl/issues/2001, read 2026-11-20
# [4] https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20
