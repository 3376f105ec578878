#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=abc123  # the project that pays
#SBATCH --partition=batch  # the first partition that fits: up to 9472 nodes, 12:00:00
#SBATCH --nodes=1  # nodes
#SBATCH --ntasks-per-node=8  # ranks on each node
#SBATCH --gpus-per-node=8  # GPUs of each node, visible to its ranks together
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job
# lets RCCL's plugin use the alternative rendezvous protocol (MPI may become slower) [1]
#SBATCH --network=disable_rdzv_get

# Written by hpclaunch 0.1.0 for frontier: Frontier at OLCF, Oak Ridge (HPE Cray EX, 8 MI250X GCDs per node,
# Slingshot-11), facts read 2026-11-20 to 2026-11-23.
# 1 node x 8 ranks = 8 ranks.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 49-55  GPU 0  NUMA node 3
#   rank 1: CPUs 57-63  GPU 1  NUMA node 3
#   rank 2: CPUs 17-23  GPU 2  NUMA node 1
#   rank 3: CPUs 25-31  GPU 3  NUMA node 1
#   rank 4: CPUs 1-7  GPU 4  NUMA node 0
#   rank 5: CPUs 9-15  GPU 5  NUMA node 0
#   rank 6: CPUs 33-39  GPU 6  NUMA node 2
#   rank 7: CPUs 41-47  GPU 7  NUMA node 2

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
# the compilers, Python and ROCm of the site's PyTorch page [1]
module load PrgEnv-gnu/8.7.0 cpe/26.03 miniforge3/23.11.0-0 rocm/7.1.1
# the first that is there
for module in rccl-net-plugin/1.0 rccl-net-plugin; do module is-avail "$module" && break; done
[ "$module" = rccl-net-plugin/1.0 ] || echo "hpclaunch: no rccl-net-plugin/1.0, but $module" >&2
module load "$module"  # RCCL's plugin for Slingshot with its variables (after rocm) [2]
module load craype-accel-amd-gfx90a  # GPU-aware MPI [1]
# the libraries of that cpe, which is not the default one [1]
export LD_LIBRARY_PATH="$CRAY_LD_LIBRARY_PATH:$LD_LIBRARY_PATH"
# RCCL finds its peers over Slingshot, not over the management network (where it hangs, try hsn0 alone) [1]
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
# Slingshot is not configured in jobs of one node, so the plugin cannot be used there [1]
export NCCL_NET=Socket
# MIOpen's database in node-local memory - on the shared file systems it fails with I/O errors [1]
export MIOPEN_USER_DB_PATH="/tmp/$USER-miopen-$SLURM_JOB_ID"
# MIOpen's kernel cache next to its database [1]
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/$USER-miopen-$SLURM_JOB_ID"
# compute nodes reach the internet through the proxy only [1]
export http_proxy=http://proxy.ccs.ornl.gov:3128/
export https_proxy=http://proxy.ccs.ornl.gov:3128/
export no_proxy="localhost,127.0.0.0/8,*.ccs.ornl.gov"  # and each other without it [1]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=7  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=8  # and the sizes, for torch.distributed and others
gpus=(0 1 2 3 4 5 6 7)  # GPUs of each local rank, nearest to its cores
export ROCR_VISIBLE_DEVICES="${gpus[LOCAL_RANK]}"  # this rank sees only its own
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000 \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'

# Sources:
# [1] https://docs.olcf.ornl.gov/software/analytics/pytorch_frontier.html, read 2026-11-22
# [2] https://docs.olcf.ornl.gov/software/software-news.html, read 2026-11-23
