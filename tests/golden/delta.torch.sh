#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=bbka-delta-gpu  # the project that pays
#SBATCH --partition=gpuA100x4  # the first partition that fits: up to any number of nodes, 48:00:00
#SBATCH --nodes=4  # nodes
#SBATCH --ntasks-per-node=4  # ranks on each node
#SBATCH --gpus-per-node=4  # GPUs of each node, visible to its ranks together
#SBATCH --mem=0  # memory of each node
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for delta: Delta at NCSA, USA, nodes with four A100 (Slingshot-11), facts read
# 2026-11-24.
# 4 nodes x 4 ranks = 16 ranks.
# Framework: torch; named in the request.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 48-63  GPU 0  NUMA node 3
#   rank 1: CPUs 32-47  GPU 1  NUMA node 2
#   rank 2: CPUs 16-31  GPU 2  NUMA node 1
#   rank 3: CPUs 0-15  GPU 3  NUMA node 0

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

source "$HOME/venv/bin/activate"  # the virtual environment, over the Python of the modules
export NCCL_SOCKET_IFNAME=hsn  # NCCL finds its peers over Slingshot, as users set it [1]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=16  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=16 LOCAL_WORLD_SIZE=4 GROUP_RANK=$((RANK / 4))  # and the sizes, for torch.distributed
export CUDA_VISIBLE_DEVICES=0,1,2,3  # all GPUs: number LOCAL_RANK is the rank's own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=mask_cpu:0xffff000000000000,0xffff00000000,0xffff0000,0xffff \
  bash -c "$rank_start$rank_end" rank \
  python train.py

# Sources:
# [1] https://docs.ncsa.illinois.edu/systems/delta/en/latest/, read 2026-11-24, community
