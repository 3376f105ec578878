#!/bin/bash
# the name in bjobs
#BSUB -J "mnist"
# the project that pays
#BSUB -P ABC123
# the first queue that fits: up to 4608 nodes, 24:00:00
#BSUB -q batch
# compute nodes, whole ones
#BSUB -nnodes 1
# walltime limit in hours and minutes
#BSUB -W 0:30
# what LSF reports, at the job's end
#BSUB -o hpclaunch-%J.out

# Written by hpclaunch 0.1.0 for summit: Summit at OLCF, Oak Ridge (IBM AC922, 6 V100 16 GB per node),
# switched off, facts read 2026-11-20 to 2026-11-22.
# 1 node x 6 ranks = 6 ranks.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0,4,8,12,16,20,24  GPU 0  NUMA node 0
#   rank 1: CPUs 28,32,36,40,44,48,52  GPU 1  NUMA node 0
#   rank 2: CPUs 56,60,64,68,72,76,80  GPU 2  NUMA node 0
#   rank 3: CPUs 88,92,96,100,104,108,112  GPU 3  NUMA node 8
#   rank 4: CPUs 116,120,124,128,132,136,140  GPU 4  NUMA node 8
#   rank 5: CPUs 144,148,152,156,160,164,168  GPU 5  NUMA node 8

set -eo pipefail
export HPCLAUNCH_JOB_ID="$LSB_JOBID"
export HPCLAUNCH_JOB_FOLDER="$LS_SUBCWD/hpclaunch-$LSB_JOBID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

# the file of the job's hosts, a line per slot, where LSF makes none for a job of one slot
if [ -z "${LSB_DJOB_HOSTFILE-}" ]; then
  export LSB_DJOB_HOSTFILE="$HPCLAUNCH_JOB_FOLDER/hosts"
  tr ' ' '\n' <<< "$LSB_HOSTS" > "$LSB_DJOB_HOSTFILE"
fi
export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
# LSF lists the launch node first, which runs this script and no rank
[ ! -r "${LSB_DJOB_HOSTFILE-}" ] || read -r launch_node < "$LSB_DJOB_HOSTFILE"
# rendezvous: the job's first node
read -r MASTER_ADDR < <(awk -v launch="${launch_node-}" '$0 != launch && !seen[$0]++' "$LSB_DJOB_HOSTFILE")
export MASTER_ADDR MASTER_PORT=$((10000 + LSB_JOBID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=7  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${JSM_NAMESPACE_RANK:?jsrun gave no rank}"  # the rank
export LOCAL_RANK="${JSM_NAMESPACE_LOCAL_RANK:?jsrun gave no rank}"  # the rank
export WORLD_SIZE=6  # and the sizes, for torch.distributed and others
gpus=(0 1 2 3 4 5)  # GPUs of each local rank, nearest to its cores
export CUDA_VISIBLE_DEVICES="${gpus[LOCAL_RANK]}"  # this rank sees only its own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
# CPUs planned for each local rank
cpus=('0,4,8,12,16,20,24' '28,32,36,40,44,48,52' '56,60,64,68,72,76,80' '88,92,96,100,104,108,112' '116,120,124,128,132,136,140' '144,148,152,156,160,164,168')
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null  # bind this shell, which becomes the program (man taskset)
HPCLAUNCH_RANK

jsrun --nrs=1 --rs_per_host=1 --tasks_per_rs=6 -c ALL_CPUS -g ALL_GPUS -d packed --bind=none \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'
