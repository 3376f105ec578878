#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=ehpc123  # the project that pays
#SBATCH --partition=acc  # named in the request
#SBATCH --qos=acc_ehpc  # named in the request
#SBATCH --nodes=2  # nodes
#SBATCH --ntasks-per-node=4  # ranks on each node
#SBATCH --gpus-per-node=4  # GPUs of each node, visible to its ranks together
#SBATCH --cpus-per-task=20  # CPUs for each rank
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for mn5-acc: MareNostrum 5 ACC at BSC, Spain (4 H100 64 GB per node, InfiniBand
# NDR200), facts read 2026-11-20 to 2026-11-23.
# 2 nodes x 4 ranks = 8 ranks.
# Framework: not known; --framework names it.
# Each rank binds itself at its start, to up to 20 cores near its GPU, as /sys of its node shows them
# (bind_here.sh).

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

module purge  # modules that are loaded at login leak into images and other Pythons [1]
export SRUN_CPUS_PER_TASK=20  # srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch
# srun's binding of the ranks; none where each binds itself (bind_here.sh)
cpu_bind=${hpclaunch_cpu_bind:-cores}
export NCCL_NET=IB  # fail rather than fall back to TCP when InfiniBand cannot be used [2]
# the cards of the compute network, as groups of users name them, without the storage cards [2]
export NCCL_IB_HCA=mlx5_0,mlx5_1,mlx5_4,mlx5_5
export NCCL_SOCKET_IFNAME=ib0,ib1,ib2,ib3  # NCCL finds the other nodes by the interfaces of InfiniBand [2]
export NCCL_NVLS_ENABLE=0  # as in users' scripts that ran on many nodes [2]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=20  # threads for each rank: its share of the node's cores
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=8  # and the sizes, for torch.distributed and others
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind="$cpu_bind" \
  bash -c "$rank_start$rank_end" rank \
  python train.py --deepspeed_config 'ds config.json'

# Sources:
# [1] https://github.com/jorditorresBCN/HPC4AIbook, read 2026-11-23, community
# [2] https://github.com/OpenEuroLLM/oellm-autoexp, read 2026-11-23, community
