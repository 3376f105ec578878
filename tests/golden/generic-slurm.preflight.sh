#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --nodes=2  # nodes
#SBATCH --ntasks-per-node=1  # ranks on each node
#SBATCH --cpus-per-task=1  # CPUs for each rank
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job
#SBATCH --exclude=n7  # nodes to leave out
#SBATCH --signal=B:USR1@120  # seconds of warning before the limit (man sbatch)
#SBATCH --requeue  # the job may come back after a checkpoint

# Written by hpclaunch 0.1.0 for generic-slurm: Any cluster with Slurm about which nothing else is known,
# facts read 2026-11-20.
# 2 nodes x 1 rank = 2 ranks.
# No binding is planned: the NUMA nodes are not described, or --binding off.

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: --preflight needs --dry-run --save DIR" >&2; exit 1; }

export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
export SRUN_CPUS_PER_TASK=1  # srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=1  # threads for each rank: --cpus-per-task
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

hpclaunch_preflight  # one process on each node checks it before the ranks start

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=2  # and the sizes, for torch.distributed and others
HPCLAUNCH_RANK

hpclaunch_supervise srun --kill-on-bad-exit=1 --cpu-bind=cores \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist' --checkpoint-dir checkpoints --resume
