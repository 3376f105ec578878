#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=abc@h100  # the project that pays
#SBATCH --partition=gpu_p6  # the first partition that fits: up to any number of nodes, 20:00:00
#SBATCH --nodes=1  # nodes
#SBATCH --ntasks-per-node=4  # ranks on each node
#SBATCH --gres=gpu:4  # GPUs of each node, visible to its ranks together
#SBATCH --cpus-per-task=24  # CPUs for each rank
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job
#SBATCH --constraint=h100  # the nodes with H100 [1]
#SBATCH --hint=nomultithread  # CPUs are cores, as in the site's scripts [1]

# Written by hpclaunch 0.1.0 for jean-zay: Jean Zay at IDRIS, France, nodes with four H100 80 GB (partition
# gpu_p6, InfiniBand), facts read 2026-11-24.
# 1 node x 4 ranks = 4 ranks.
# Each rank binds itself at its start, to up to 24 cores near its GPU, as /sys of its node shows them
# (bind_here.sh).

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
export SRUN_CPUS_PER_TASK=24  # srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch
# srun's binding of the ranks; none where each binds itself (bind_here.sh)
cpu_bind=${hpclaunch_cpu_bind:-cores}
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=24  # threads for each rank: its share of the node's cores
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=4  # and the sizes, for torch.distributed and others
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind="$cpu_bind" \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'

# Sources:
# [1] https://github.com/idriscnrs/Democratizing-LLM-FT, read 2026-11-24
