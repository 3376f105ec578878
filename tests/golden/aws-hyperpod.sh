#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --nodes=4  # nodes
#SBATCH --ntasks-per-node=8  # ranks on each node
#SBATCH --gres=gpu:8  # GPUs of each node, visible to its ranks together
#SBATCH --cpus-per-task=1  # CPUs for each rank
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for aws-hyperpod: Amazon SageMaker HyperPod with Slurm, instances with EFA,
# pyxis, auto-resume, facts read 2026-11-20 to 2026-11-24.
# 4 nodes x 8 ranks = 32 ranks.
# Framework: torch; named in the request.
# No binding is planned: the NUMA nodes are not described, or --binding off.

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

HPCLAUNCH_BINDS+=",/fsx:/fsx"  # in the container: MPI and fabric of the site
# and folders that are there; where a name is a link, under both names
for folder in "/fsx" "$HPCLAUNCH_JOB_FOLDER" "$HPCLAUNCH_FILES" "$PWD"; do
  real=$(readlink -e -- "$folder") && [ "$real" != / ] || continue
  case $folder$real in *[,:]*) echo "hpclaunch: a comma or colon keeps $folder out" >&2; continue ;; esac
  HPCLAUNCH_BINDS+=,$real:$real$([ "$real" = "$folder" ] || echo ",$real:$folder")
done
export HPCLAUNCH_BINDS=${HPCLAUNCH_BINDS#,}
export SRUN_CPUS_PER_TASK=1  # srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch
export FI_EFA_USE_HUGE_PAGE=0  # else os.fork() of data loaders may fail, Cannot allocate memory [1]
export NCCL_SOCKET_IFNAME=^docker,lo,veth  # NCCL finds its peers on no interface of containers [2]
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=1  # threads for each rank: --cpus-per-task
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=32 LOCAL_WORLD_SIZE=8 GROUP_RANK=$((RANK / 8))  # and the sizes, for torch.distributed
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=cores --auto-resume=1 \
  --container-image="nvcr.io#nvidia/pytorch:25.06-py3" --container-mounts="${HPCLAUNCH_BINDS#,}" \
  --container-workdir="$PWD" \
  bash -c "$rank_start$rank_end" rank \
  python train.py

# Sources:
# [1] https://github.com/awslabs/awsome-distributed-ai/blob/main/1.architectures/efa-cheatsheet.md, read 2026-11-24
# [2] https://github.com/awslabs/awsome-distributed-ai/tree/main/3.test_cases/pytorch/FSDP/slurm, read 2026-11-24
