#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --account=MyProject  # the project that pays
#SBATCH --partition=boost_usr_prod  # the first partition that fits: up to 64 nodes, 1-00:00:00
#SBATCH --nodes=2  # nodes
#SBATCH --ntasks-per-node=1  # deepspeed, which starts the ranks on each node
#SBATCH --gpus-per-node=4  # GPUs of each node, visible to its ranks together
#SBATCH --cpus-per-task=32  # CPUs for each rank
#SBATCH --mem=494000M  # memory of each node
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for leonardo: Leonardo Booster at CINECA, Italy (4 custom A100 64 GB per node,
# InfiniBand HDR), facts read 2026-11-20 to 2026-11-23.
# 2 nodes x 4 ranks = 8 ranks, started on each node by deepspeed.
# Framework: deepspeed; named in the request.
# No binding is planned: the ranks of a node share its cores.

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

export SRUN_CPUS_PER_TASK=32  # srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
# the nodes and how many ranks each has, as DeepSpeed's launcher reads them
scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n '1,2s/$/ slots=4/p' > "$HPCLAUNCH_JOB_FOLDER/hostfile"
export HPCLAUNCH_HOSTFILE="$HPCLAUNCH_JOB_FOLDER/hostfile"  # and its name, for programs that start others
export OMP_NUM_THREADS=8  # threads for each rank: its share of the node's cores
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each worker that deepspeed starts is a shell with these lines: the file "worker".
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
: "${RANK:?the worker has no rank}" "${LOCAL_RANK:?the worker has no rank}"  # its launcher's
# deepspeed puts the local rank before the program's own words
case $1 in --local[_-]rank=*) set -- "$2" "$1" "${@:3}" ;; esac
IFS= read -r -d "" python < "/proc/$PPID/cmdline"; set -- "${python:-python}" -u "$@"  # the launcher's Python
export CUDA_VISIBLE_DEVICES=0,1,2,3  # all GPUs: number LOCAL_RANK is the rank's own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
HPCLAUNCH_RANK
install -m 700 /dev/stdin "$HPCLAUNCH_JOB_FOLDER/worker" <<< $'#!/bin/bash\n'"$rank_start$rank_end"

# On each node a shell with these lines starts deepspeed.
IFS= read -r -d '' node_start <<'HPCLAUNCH_NODE' || :
# deepspeed, with what the command leaves open, and the workers' file as its program
set -- "${@:1:1}" --hostfile="$HPCLAUNCH_JOB_FOLDER/hostfile" --no_ssh \
  --node_rank="${SLURM_PROCID:?srun gave no rank}" --master_addr="$MASTER_ADDR" --master_port="$MASTER_PORT" \
  --no_python "$HPCLAUNCH_JOB_FOLDER/worker" "${@:2}"
exec -- "$@"
HPCLAUNCH_NODE

srun --kill-on-bad-exit=1 --cpu-bind=none \
  bash -c "$node_start" node \
  deepspeed train.py --deepspeed_config ds.json
