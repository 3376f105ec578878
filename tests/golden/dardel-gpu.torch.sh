#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=naiss2025-1-23  # the project that pays
#SBATCH --partition=gpu  # the first partition that fits: up to any number of nodes, 24:00:00
#SBATCH --nodes=4  # nodes
#SBATCH --ntasks-per-node=8  # ranks on each node
#SBATCH --gpus-per-node=8  # GPUs of each node, visible to its ranks together
#SBATCH --mem=440G  # memory of each node
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for dardel-gpu: GPU partition of Dardel at PDC, Sweden (HPE Cray EX, 8 MI250X
# GCDs per node), facts read 2026-11-20 to 2026-11-24.
# 4 nodes x 8 ranks = 32 ranks.
# Framework: torch; named in the request.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 48-55  GPU 0  NUMA node 3
#   rank 1: CPUs 56-63  GPU 1  NUMA node 3
#   rank 2: CPUs 16-23  GPU 2  NUMA node 1
#   rank 3: CPUs 24-31  GPU 3  NUMA node 1
#   rank 4: CPUs 0-7  GPU 4  NUMA node 0
#   rank 5: CPUs 8-15  GPU 5  NUMA node 0
#   rank 6: CPUs 32-39  GPU 6  NUMA node 2
#   rank 7: CPUs 40-47  GPU 7  NUMA node 2

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

module load PDC/24.11  # what the site's containers need
module load singularity/4.2.0-cpeGNU-24.11  # what the site's containers need
SINGULARITY_BIND+=",/cfs/klemming"  # in the container: MPI and fabric of the site
# and folders that are there; where a name is a link, under both names
for folder in "/cfs/klemming/projects/snic" "$PDC_SHUB" "$PDC_TMP" "$HPCLAUNCH_JOB_FOLDER" \
  "$HPCLAUNCH_FILES" "$PWD"; do
  real=$(readlink -e -- "$folder") && [ "$real" != / ] || continue
  case $folder$real in *[,:]*) echo "hpclaunch: a comma or colon keeps $folder out" >&2; continue ;; esac
  SINGULARITY_BIND+=,$real$([ "$real" = "$folder" ] || echo ",$real:$folder")
done
export SINGULARITY_BIND=${SINGULARITY_BIND#,}
# RCCL finds its peers over Slingshot, not over the management network [1]
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
export FI_MR_CACHE_MONITOR=userfaultfd  # libfabric's default, memhooks, can deadlock with RCCL [1]
export FI_CXI_DISABLE_HOST_REGISTER=1  # no host memory registered with the GPU, which can deadlock [1]
export FI_CXI_DEFAULT_CQ_SIZE=131072  # completion queues large enough for collectives over many ranks [1]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=8  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=32 LOCAL_WORLD_SIZE=8 GROUP_RANK=$((RANK / 8))  # and the sizes, for torch.distributed
export ROCR_VISIBLE_DEVICES=0,1,2,3,4,5,6,7  # all GPUs: number LOCAL_RANK is the rank's own
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=mask_cpu:0xff000000000000,0xff00000000000000,0xff0000,0xff000000,0xff,0xff00,0xff00000000,0xff0000000000 \
  bash -c "$rank_start$rank_end" rank \
  singularity exec --rocm /pdc/software/resources/sing_hub/rocm6.3_ubuntu24.04_py3.12_pytorch_release_2.4.0 python train.py

# Sources:
# [1] https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20
