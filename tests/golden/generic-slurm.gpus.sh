#!/bin/bash
# the name in squeue
#SBATCH --job-name=mnist
# nodes
#SBATCH --nodes=2
# ranks on each node
#SBATCH --ntasks-per-node=4
# GPUs of each node, visible to its ranks together
#SBATCH --gpus-per-node=4
# CPUs for each rank
#SBATCH --cpus-per-task=1
# whole nodes, also where the partition shares them
#SBATCH --exclusive
# walltime limit
#SBATCH --time=00:30:00
# stdout and stderr of the job
#SBATCH --output=hpclaunch-%j.out
# each run writes on in the same log: Slurm, too, may requeue the job
#SBATCH --open-mode=append

# Written by hpclaunch VERSION for generic-slurm: Any cluster with Slurm about which nothing else is known, facts read 2026-11-20 to 2026-11-20.
# 2 nodes x 4 ranks = 8 ranks.
# No binding is planned: the NUMA nodes are not described, or --binding off.

set -eo pipefail

# The folder of this job's log, result and exit status.
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"
export HPCLAUNCH_RESULT_FILE=$HPCLAUNCH_JOB_FOLDER/result.json
mkdir -p "$HPCLAUNCH_JOB_FOLDER"

# How an earlier run of this job ended no longer counts.
rm -f "$HPCLAUNCH_JOB_FOLDER/exit_status" "$HPCLAUNCH_JOB_FOLDER/reason" "$HPCLAUNCH_JOB_FOLDER/log_start"
# Where the log of this run begins, if there is a log of runs before.
{ wc -c < "$HPCLAUNCH_JOB_FOLDER/out.log" > "$HPCLAUNCH_JOB_FOLDER/log_start"; } 2> /dev/null || :
# Room for the files that report how the job ended is reserved now: at the end the disk or quota may be full.
echo > "$HPCLAUNCH_JOB_FOLDER/exit_status.new" || :
# Write text $2 to file $1 of the folder, into the reserved room; the file appears whole or not at all.
# shellcheck disable=SC2329  # the trap calls it
hpclaunch_write() {
  printf '%s\n' "$2" 1<> "$HPCLAUNCH_JOB_FOLDER/$1.new" && mv "$HPCLAUNCH_JOB_FOLDER/$1.new" "$HPCLAUNCH_JOB_FOLDER/$1"
}

# The exit status is written however the job ends.
# shellcheck disable=SC2329  # the trap calls it
hpclaunch_end() {
  status=$?
  trap - EXIT
  # What the samples say, in one line; a job that is ended by a signal has no time for it.
  [ "$status" -ge 128 ] || timeout 10 bash "$HPCLAUNCH_JOB_FOLDER/sampler.sh" summary "$HPCLAUNCH_JOB_FOLDER/samples" "$HPCLAUNCH_JOB_ID" 2> /dev/null || :
  hpclaunch_write exit_status "$status" || :
  exit "$status"
}
trap hpclaunch_end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# number of ranks of the job
export HPCLAUNCH_TASKS=8

# the training runner, which submit copies to the job folder
export PYTHONPATH="$HPCLAUNCH_JOB_FOLDER/runner${PYTHONPATH:+:$PYTHONPATH}"

# settings of an outer allocation, which srun would read as options
unset SLURM_ACCTG_FREQ SLURM_CPU_BIND SLURM_CPU_BIND_LIST SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_VERBOSE \
  SLURM_CPU_FREQ_REQ SLURM_CPUS_PER_GPU SLURM_DISTRIBUTION SLURM_DIST_PLANESIZE SLURM_EXPORT_ENV \
  SLURM_GPU_BIND SLURM_GPU_FREQ SLURM_GPUS SLURM_GPUS_PER_SOCKET SLURM_GPUS_PER_TASK SLURM_HINT \
  SLURM_MEM_BIND SLURM_MEM_BIND_LIST SLURM_MEM_BIND_PREFER SLURM_MEM_BIND_SORT SLURM_MEM_BIND_TYPE \
  SLURM_MEM_BIND_VERBOSE SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE SLURM_NETWORK \
  SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_SOCKET SLURM_OVERCOMMIT SLURM_PROFILE \
  SLURM_THREADS_PER_CORE SLURM_TRES_PER_TASK

# srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch
export SRUN_CPUS_PER_TASK=1

# rendezvous: the job's first node
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
export MASTER_ADDR

# rendezvous: a port of this job's own, below the ephemeral range
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))

# threads for each rank: --cpus-per-task
export OMP_NUM_THREADS=1

# The samples of each node, a file per node; those of runs before a restart stay.
mkdir -p "$HPCLAUNCH_JOB_FOLDER/samples" || :

# What each rank last wrote to its stderr, in this run.
rm -rf "$HPCLAUNCH_JOB_FOLDER/stderr" || :
mkdir "$HPCLAUNCH_JOB_FOLDER/stderr" || :

# Each rank is a shell that runs these lines and then becomes the program.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
# the rank, as the variables that torch.distributed and others read
export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" WORLD_SIZE=8
# an MPI that is started by a plugin which it does not speak gives no error
if [ "$SLURM_PROCID" = 0 ] && [ -z "${PMIX_RANK-}" ]; then
  case ${PMI_RANK-}${PALS_RANKID-},$(ldd "$(command -v -- "$1")" 2> /dev/null) in
    ,*libmpi* | *libopen-pal.so.80*)
      echo "each rank would run alone, as 'rank 0 of 1': the MPI of $1 does not speak srun's plugin;" \
        "--mpi pmix is for Open MPI, pmi2 for MPICH (srun --mpi=list), none starts it so on purpose" |
        tee "$HPCLAUNCH_JOB_FOLDER/reason" >&2
      exit 1 ;;
  esac
fi
# Its stderr goes to the launcher and, the end of it, to a file: launchers lose lines when they end a job.
[ ! -r "$HPCLAUNCH_JOB_FOLDER/rank_stderr.sh" ] || . "$HPCLAUNCH_JOB_FOLDER/rank_stderr.sh" "$HPCLAUNCH_JOB_FOLDER" "$RANK"
# Each rank notes its process, and local rank 0 of each node starts the sampler: one process that reads counters of CPU,
# memory, GPUs and energy each 30 s for hpclaunch report, and ends with that rank. --no-sample leaves it out.
hpclaunch_sample() {
  local host
  read -r host < /proc/sys/kernel/hostname
  host=$HPCLAUNCH_JOB_FOLDER/samples/$host
  { printf 'rank %s %s %(%s)T\n' "$RANK" $$ -1 >> "$host"; } 2> /dev/null || return 0
  [ "$LOCAL_RANK" != 0 ] || ( bash "$HPCLAUNCH_JOB_FOLDER/sampler.sh" $$ 30 "$host" & ) < /dev/null > /dev/null 2>&1
}
hpclaunch_sample
# Become the program, which has no other child left of this shell.
[ -z "${hpclaunch_copier:-}" ] || wait "$hpclaunch_copier"
exec -- "$@"
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=cores \
  bash -c "$rank_start" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'
