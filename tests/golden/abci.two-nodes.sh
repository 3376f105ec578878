#!/bin/bash
# the name in qstat
#$ -N mnist
# the shell; the queue's own may be another one
#$ -S /bin/bash
# the job starts where it was submitted
#$ -cwd
# nodes of this kind: the first resource that fits: up to 512 nodes, 72:00:00
#$ -l rt_F=2
# walltime limit
#$ -l h_rt=00:30:00
# stderr goes where stdout goes
#$ -j y
# a job for each index
#$ -t 1-4
# how many of them run at a time
#$ -tc 2

# Written by hpclaunch 0.1.0 for abci: ABCI 2.0 at AIST, Japan (nodes of 4 V100 16 GB; those of 8 A100 are in
# abci-a100), switched off, facts read 2026-11-20 to 2026-11-23.
# 2 nodes x 4 ranks = 8 ranks.
# Framework: not known; --framework names it.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0-9  GPU 0  NUMA node 0
#   rank 1: CPUs 10-19  GPU 1  NUMA node 0
#   rank 2: CPUs 20-29  GPU 2  NUMA node 1
#   rank 3: CPUs 30-39  GPU 3  NUMA node 1

set -eo pipefail
export HPCLAUNCH_JOB_ID="$JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SGE_O_WORKDIR/hpclaunch-$JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
export HPCLAUNCH_ARRAY_INDEX=$SGE_TASK_ID
HPCLAUNCH_JOB_FOLDER=$HPCLAUNCH_JOB_FOLDER/$HPCLAUNCH_ARRAY_INDEX  # each job of the array has its own
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
export HPCLAUNCH_TASKS=8  # ranks
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

source /etc/profile.d/modules.sh  # the module command, which a job script does not have [1]
module load openmpi/4.0.5  # the MPI that starts the ranks [2]
# Open MPI (5, and 4) must not bind: a rank binds itself where cores are planned for it
export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none
# the file of the job's nodes, a line per rank
if [ -r "${PE_HOSTFILE-}" ]; then awk '!seen[$1]++ { print $1 }' "$PE_HOSTFILE"; else hostname; fi | awk -v ranks="$HPCLAUNCH_TASKS" '{ node[NR] = $0 } END { for (i = 1; i <= NR; i++) for (k = 0; k < ranks / NR; k++) print node[i] }' > "$HPCLAUNCH_JOB_FOLDER/machines"
# rendezvous: the job's first node
read -r MASTER_ADDR < <(if [ -r "${PE_HOSTFILE-}" ]; then awk '!seen[$1]++ { print $1 }' "$PE_HOSTFILE"; else hostname; fi)
export MASTER_ADDR MASTER_PORT=$((10000 + (JOB_ID + SGE_TASK_ID) % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=10  # threads for each rank: the cores it is bound to
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?mpiexec gave no rank}}"  # the rank
export LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:?mpiexec gave no rank}}"  # the rank
export WORLD_SIZE=8  # and the sizes, for torch.distributed and others
export CUDA_VISIBLE_DEVICES=0,1,2,3  # all GPUs: number LOCAL_RANK is the rank's own
export CUDA_DEVICE_ORDER=PCI_BUS_ID  # numbers GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
cpus=(0-9 10-19 20-29 30-39)  # CPUs planned for each local rank
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null  # bind this shell, which becomes the program (man taskset)
HPCLAUNCH_RANK

mpirun -n 8 -machinefile "$HPCLAUNCH_JOB_FOLDER/machines" \
  bash -c "$rank_start$rank_end" rank \
  python train.py --deepspeed_config 'ds config.json'

# Sources:
# [1] https://github.com/aistabci/abci-docs/blob/master/en/docs/environment-modules.md, read 2026-11-22
# [2] https://github.com/aistabci/abci-docs/blob/master/en/docs/mpi.md, read 2026-11-22
