#!/bin/bash
# the name in bjobs, and a job for each index
#BSUB -J "mnist[1-9]%2"
# slots: one per rank
#BSUB -n 1
# slots on each node
#BSUB -R "span[ptile=1]"
# whole nodes, also where the queue shares them
#BSUB -x
# walltime limit in hours and minutes
#BSUB -W 0:30
# what LSF reports, at the job's end
#BSUB -o hpclaunch-%J.out
# jobs that must end first
#BSUB -w "done(12) && done(13)"

# Written by hpclaunch VERSION for generic-lsf: Any cluster with IBM Spectrum LSF, of which nothing else is known, facts read 2026-11-22 to 2026-11-22.
# 1 node x 1 rank = 1 rank.
# No binding is planned: the NUMA nodes are not described, or --binding off.

set -eo pipefail

# The folder of this job's log, result and exit status.
export HPCLAUNCH_JOB_ID="$LSB_JOBID"
export HPCLAUNCH_JOB_FOLDER="$LS_SUBCWD/hpclaunch-$LSB_JOBID"
# Each job of the array has an index, and its own folder for its log, result and exit status.
export HPCLAUNCH_ARRAY_INDEX=$LSB_JOBINDEX
HPCLAUNCH_JOB_FOLDER=$HPCLAUNCH_JOB_FOLDER/$HPCLAUNCH_ARRAY_INDEX
export HPCLAUNCH_RESULT_FILE=$HPCLAUNCH_JOB_FOLDER/result.json
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
# The job's log, in which a run that comes back writes on.
exec >> "$HPCLAUNCH_JOB_FOLDER/out.log" 2>&1

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
  [ "$status" -ge 128 ] || timeout 10 bash "${HPCLAUNCH_JOB_FOLDER%/*}/sampler.sh" summary "$HPCLAUNCH_JOB_FOLDER/samples" "$HPCLAUNCH_JOB_ID" 2> /dev/null || :
  hpclaunch_write exit_status "$status" || :
  exit "$status"
}
trap hpclaunch_end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# the file of the job's hosts, a line per slot, where LSF makes none for a job of one slot
if [ -z "${LSB_DJOB_HOSTFILE-}" ]; then
  export LSB_DJOB_HOSTFILE="$HPCLAUNCH_JOB_FOLDER/hosts"
  tr ' ' '\n' <<< "$LSB_HOSTS" > "$LSB_DJOB_HOSTFILE"
fi

# number of ranks of the job
export HPCLAUNCH_TASKS=1

# the training runner, which submit copies to the job folder
export PYTHONPATH="${HPCLAUNCH_JOB_FOLDER%/*}/runner${PYTHONPATH:+:$PYTHONPATH}"

# Open MPI (5, and 4) must not bind: a rank binds itself where cores are planned for it
export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none

# rendezvous: the job's first node
read -r MASTER_ADDR < <(awk -v launch="${launch_node-}" '$0 != launch && !seen[$0]++' "$LSB_DJOB_HOSTFILE")
export MASTER_ADDR

# rendezvous: a port of this job's own, below the ephemeral range
export MASTER_PORT=$((10000 + (LSB_JOBID + LSB_JOBINDEX) % 10000))

# threads for each rank: --cpus-per-task
export OMP_NUM_THREADS=1

# Preflight: one process per node checks it before the ranks start. A node that fails is named, and the job ends.
probe=${HPCLAUNCH_JOB_FOLDER%/*}/probe.py
preflight=$HPCLAUNCH_JOB_FOLDER/preflight
awk -v launch="${launch_node-}" '$0 != launch && !seen[$0]++' "$LSB_DJOB_HOSTFILE" > "$HPCLAUNCH_JOB_FOLDER/nodes"
mapfile -t nodes < "$HPCLAUNCH_JOB_FOLDER/nodes"
timeout 300 mpirun -n 1 -machinefile "$HPCLAUNCH_JOB_FOLDER/nodes" python3 "$probe" preflight '{}' \
  > "$preflight.now" || echo "hpclaunch: the launch of the preflight ended with exit status $?"
cat "$preflight.now" >> "$preflight"  # after those of earlier runs
if ! python3 "$probe" verdict 1 "${nodes[@]}" < "$preflight.now" > "$preflight.words"; then
  grep -v ^hpclaunch- "$preflight.words" || :
  grep ^hpclaunch- "$preflight.words" >> "$preflight" || :  # the nodes that gave no answer
  grep -v ^hpclaunch- "$preflight.words" > "$HPCLAUNCH_JOB_FOLDER/reason"
  exit 1
fi

# The samples of each node, a file per node; those of runs before a restart stay.
mkdir -p "$HPCLAUNCH_JOB_FOLDER/samples" || :

# What each rank last wrote to its stderr, in this run.
rm -rf "$HPCLAUNCH_JOB_FOLDER/stderr" || :
mkdir "$HPCLAUNCH_JOB_FOLDER/stderr" || :

# Each rank is a shell that runs these lines and then becomes the program.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
# the rank, as the variables that torch.distributed and others read
export RANK="${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID}" WORLD_SIZE=1
# Its stderr goes to the launcher and, the end of it, to a file: launchers lose lines when they end a job.
[ ! -r "${HPCLAUNCH_JOB_FOLDER%/*}/rank_stderr.sh" ] || . "${HPCLAUNCH_JOB_FOLDER%/*}/rank_stderr.sh" "$HPCLAUNCH_JOB_FOLDER" "$RANK"
# Each rank notes its process, and local rank 0 of each node starts the sampler: one process that reads counters of CPU,
# memory, GPUs and energy each 30 s for hpclaunch report, and ends with that rank. --no-sample leaves it out.
hpclaunch_sample() {
  local host
  read -r host < /proc/sys/kernel/hostname
  host=$HPCLAUNCH_JOB_FOLDER/samples/$host
  { printf 'rank %s %s %(%s)T\n' "$RANK" $$ -1 >> "$host"; } 2> /dev/null || return 0
  [ "$LOCAL_RANK" != 0 ] || ( bash "${HPCLAUNCH_JOB_FOLDER%/*}/sampler.sh" $$ 30 "$host" & ) < /dev/null > /dev/null 2>&1
}
hpclaunch_sample
# Become the program, which has no other child left of this shell.
[ -z "${hpclaunch_copier:-}" ] || wait "$hpclaunch_copier"
exec -- "$@"
HPCLAUNCH_RANK

mpirun -n 1 -machinefile "$LSB_DJOB_HOSTFILE" \
  bash -c "$rank_start" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'
