#!/bin/bash
#COBALT --jobname mnist
#COBALT -A MyProject
#COBALT -q full-node
#COBALT -n 2
#COBALT -t 00:30:00
#COBALT --attrs filesystems=home,theta-fs0
# Cobalt reads the lines at the top only, up to the first blank one. What each of them is for:
#   --jobname mnist: the name in qstat
#   -A MyProject: the project that pays
#   -q full-node: the first queue that fits: up to 24 nodes, 12:00:00
#   -n 2: nodes
#   -t 00:30:00: walltime limit
#   --attrs filesystems=home,theta-fs0: the file systems that the job needs; a job that names none waits while any of them is down

# Written by hpclaunch 0.1.0 for thetagpu: ThetaGPU at ALCF, Argonne (24 NVIDIA DGX A100 of 8 A100 40 GB),
# switched off, facts read 2026-11-20 to 2026-11-23.
# 2 nodes x 8 ranks = 16 ranks.
# Framework: horovod; named in the request.
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
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

module load conda/2021-06-26  # Python with PyTorch, TensorFlow and Horovod [2]
conda activate  # the environment of that module [2]
# Open MPI (5, and 4) must not bind: a rank binds itself where cores are planned for it
export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none
# the launcher starts the ranks, so they find each other by MPI (Gloo needs horovodrun)
export HOROVOD_CONTROLLER=mpi
# and tensors in host memory go by MPI, also where Gloo is the build's default
export HOROVOD_CPU_OPERATIONS=mpi
export OMP_NUM_THREADS=8  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
RANK="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?mpiexec gave no rank}}"  # this shell's own
LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:?mpiexec gave no rank}}"  # this shell's own
export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7  # all GPUs: number LOCAL_RANK is the rank's own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
cpus=(48-55 56-63 16-23 24-31 112-119 120-127 80-87 88-95)  # CPUs planned for each local rank
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null  # bind this shell, which becomes the program (man taskset)
HPCLAUNCH_RANK

mpirun -np 16 -npernode 8 --hostfile "$COBALT_NODEFILE" -x HPCLAUNCH_JOB_FOLDER -x HPCLAUNCH_FILES -x \
  MASTER_ADDR -x MASTER_PORT -x OMP_NUM_THREADS -x LD_LIBRARY_PATH -x PATH -x PYTHONPATH \
  bash -c "$rank_start$rank_end" rank \
  python train.py --deepspeed_config 'ds config.json'

# Sources:
# [1] https://github.com/argonne-lcf/user-guides/blob/main/docs/theta-gpu/queueing-and-running-jobs/job-and-queue-scheduling.md, read 2026-11-22
# [2] https://github.com/argonne-lcf/user-guides/blob/main/docs/theta-gpu/data-science-workflows/dl-frameworks/running-pytorch-conda.md, read 2026-11-22
