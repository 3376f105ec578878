#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=myproject  # the project that pays
#SBATCH --partition=booster  # the first partition that fits: up to 936 nodes, 24:00:00
#SBATCH --nodes=4  # nodes
#SBATCH --ntasks-per-node=4  # ranks on each node
#SBATCH --gres=gpu:4  # GPUs of each node, visible to its ranks together
#SBATCH --cpus-per-task=24  # CPUs for each rank
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for juwels-booster: JUWELS Booster at JSC, Germany (4 A100 per node, InfiniBand
# HDR200), facts read 2026-11-24.
# 4 nodes x 4 ranks = 16 ranks.
# Framework: torch; named in the request.
# Each rank binds itself at its start, to up to 12 cores near its GPU, as /sys of its node shows them
# (bind_here.sh).

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

module load Stages/2026  # torch 2.9.1, software of the site [1]
module load GCCcore/14.3.0  # torch 2.9.1, software of the site [1]
module load PyTorch/2.9.1  # torch 2.9.1, software of the site [1]
export SRUN_CPUS_PER_TASK=24  # srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch
# srun's binding of the ranks; none where each binds itself (bind_here.sh)
cpu_bind=${hpclaunch_cpu_bind:-cores}
export NCCL_SOCKET_IFNAME=ib0  # NCCL finds the other nodes by InfiniBand [2]
export GLOO_SOCKET_IFNAME=ib0  # and so does gloo, which needs it here [2]
export NCCL_IB_TIMEOUT=50  # a link that comes back ends no job [2]
export NCCL_IB_RETRY_CNT=10  # the same, by more attempts [2]
export NCCL_SOCKET_FAMILY=AF_INET  # nodes find each other by IPv4 [3]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
MASTER_ADDR+=i  # its name on the fast network
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=12  # threads for each rank: its share of the node's cores
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=16 LOCAL_WORLD_SIZE=4 GROUP_RANK=$((RANK / 4))  # and the sizes, for torch.distributed
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind="$cpu_bind" \
  bash -c "$rank_start$rank_end" rank \
  python train.py

# Sources:
# [1] https://github.com/easybuilders/JSC, read 2026-11-24, community
# [2] https://github.com/FZJ-JSC/jubench-megatron-lm, read 2026-11-24
# [3] https://github.com/OpenEuroLLM/oellm-autoexp, read 2026-11-24, community
