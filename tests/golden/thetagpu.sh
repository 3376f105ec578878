#!/bin/bash
#COBALT --jobname mnist
#COBALT -A MyProject
#COBALT -q full-node
#COBALT -n 1
#COBALT -t 00:30:00
#COBALT --attrs filesystems=home,theta-fs0
# Cobalt reads the lines at the top only, up to the first blank one. What each of them is for:
#   --jobname mnist: the name in qstat
#   -A MyProject: the project that pays
#   -q full-node: the first queue that fits: up to 24 nodes, 12:00:00
#   -n 1: nodes
#   -t 00:30:00: walltime limit
#   --attrs filesystems=home,theta-fs0: the file systems that the job needs; a job that names none waits while any of them is down

# Written by hpclaunch 0.1.0 for thetagpu: ThetaGPU at ALCF, Argonne (24 NVIDIA DGX A100 of 8 A100 40 GB),
# switched off, facts read 2026-11-20 to 2026-11-23.
# 1 node x 8 ranks = 8 ranks.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 48-55  GPU 0  NUMA node 3
#   rank 1: CPUs 56-63  GPU 1  NUMA node 3
#   rank 2: CPUs 16-23  GPU 2  NUMA node 1
#   rank 3: CPUs 24-31  GPU 3  NUMA node 1
#   rank 4: CPUs 112-119  GPU 4  NUMA node 7
#   rank 5: CPUs 120-127  GPU 5  NUMA node 7
#   rank 6: CPUs 80-87  GPU 6  NUMA node 5
#   rank 7: CPUs 88-95  GPU 7  NUMA node 5

set -eo pipefail
export HPCLAUNCH_JOB_ID="$COBALT_JOBID"
export HPCLAUNCH_JOB_FOLDER="$PWD/hpclaunch-$COBALT_JOBID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || { echo "hpclaunch: mnist needs --dry-run --save DIR" >&2; exit 1; }

export PYTHONPATH="$HPCLAUNCH_FILES/runner${PYTHONPATH:+:$PYTHONPATH}"  # the training runner
module load conda/2021-06-26  # Python with PyTorch, TensorFlow and Horovod [2]
conda activate  # the environment of that module [2]
# Open MPI (5, and 4) must not bind: a rank binds itself where cores are planned for it
export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none
# rendezvous: the job's first node
read -r MASTER_ADDR < <(if [ -r "${COBALT_NODEFILE-}" ]; then cat "$COBALT_NODEFILE"; else awk -v list="$COBALT_PARTNAME" 'BEGIN { n = split(list, part, ","); for (i = 1; i <= n; i++) { m = split(part[i], end, "-"); for (k = end[1]; k <= end[m]; k++) printf "nid%05d\n", k } }'; fi)
export MASTER_ADDR MASTER_PORT=$((10000 + COBALT_JOBID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=8  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?mpiexec gave no rank}}"  # the rank
export LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:?mpiexec gave no rank}}"  # the rank
export WORLD_SIZE=8  # and the sizes, for torch.distributed and others
gpus=(0 1 2 3 4 5 6 7)  # GPUs of each local rank, nearest to its cores
export CUDA_VISIBLE_DEVICES="${gpus[LOCAL_RANK]}"  # this rank sees only its own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
cpus=(48-55 56-63 16-23 24-31 112-119 120-127 80-87 88-95)  # CPUs planned for each local rank
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null  # bind this shell, which becomes the program (man taskset)
HPCLAUNCH_RANK

mpirun -np 8 -npernode 8 --hostfile "$COBALT_NODEFILE" \
  bash -c "$rank_start$rank_end" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'

# Sources:
# [1] https://github.com/argonne-lcf/user-guides/blob/main/docs/theta-gpu/queueing-and-running-jobs/job-and-queue-scheduling.md, read 2026-11-22
# [2] https://github.com/argonne-lcf/user-guides/blob/main/docs/theta-gpu/data-science-workflows/dl-frameworks/running-pytorch-conda.md, read 2026-11-22
