#!/bin/bash
# the name in flux jobs
#flux: --job-name=mnist
# the bank that pays
#flux: --bank=bank
# named in the request
#flux: --queue=gpu
# nodes
#flux: --nodes=2
# whole nodes, one slot on each
#flux: --exclusive
# GPUs of each slot
#flux: --gpus-per-slot=4
# walltime limit
#flux: --time-limit=1800s
# stdout and stderr of the job
#flux: --output=hpclaunch-{{id}}.out
# a job that must end first
#flux: --dependency=afterok:f2WmpEbL
# a job that must end first
#flux: --dependency=afterok:91088924704768

# Written by hpclaunch VERSION for generic-flux: Any cluster with Flux, of which nothing else is known, facts read 2026-11-23 to 2026-11-23.
# 2 nodes x 4 ranks = 8 ranks.
# No binding is planned: the NUMA nodes are not described, or --binding off.

set -eo pipefail

# The folder of this job's log, result and exit status.
export HPCLAUNCH_JOB_ID="$FLUX_ENCLOSING_ID"
export HPCLAUNCH_JOB_FOLDER="$PWD/hpclaunch-$FLUX_ENCLOSING_ID"
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

# Flux' signal to the script at the walltime limit (0.88)
trap 'exit 142' ALRM

# and that of an instance that ends (0.73)
trap 'exit 129' HUP

# number of ranks of the job
export HPCLAUNCH_TASKS=8

# the training runner, which submit copies to the job folder
export PYTHONPATH="$HPCLAUNCH_JOB_FOLDER/runner${PYTHONPATH:+:$PYTHONPATH}"

# rendezvous: the job's first node
MASTER_ADDR=$(hostname)
export MASTER_ADDR

# rendezvous: a port of this job's own, below the ephemeral range
export MASTER_PORT=$((10000 + ($(flux job id --to=dec "$FLUX_ENCLOSING_ID") >> 24) % 10000))

# threads for each rank: --cpus-per-task
export OMP_NUM_THREADS=1

# Preflight: one process per node checks it before the ranks start. A node that fails is named, and the job ends.
probe=$HPCLAUNCH_JOB_FOLDER/probe.py
preflight=$HPCLAUNCH_JOB_FOLDER/preflight
flux hostlist --expand --delimiter='\n' instance > "$HPCLAUNCH_JOB_FOLDER/nodes"
mapfile -t nodes < "$HPCLAUNCH_JOB_FOLDER/nodes"
timeout 300 flux exec --noinput python3 "$probe" preflight '{}' \
  > "$preflight.now" || echo "hpclaunch: the launch of the preflight ended with exit status $?"
cat "$preflight.now" >> "$preflight"  # after those of earlier runs
if ! python3 "$probe" verdict 2 "${nodes[@]}" < "$preflight.now" > "$preflight.words"; then
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
export RANK="$FLUX_TASK_RANK" LOCAL_RANK="$FLUX_TASK_LOCAL_ID" WORLD_SIZE=8
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
# Run the program, and live through the signal that is meant for it.
trap : TERM
code=0
"$@" || code=$?
# a rank that failed is named and waits: Flux (0.88) ends the job at once and drops what it has not passed on; it looks at the first rank that ends only: if that one was done, this rank ends the job
[ "$code" = 0 ] || [ "$code" = 143 ] || {
  failed="task rank $FLUX_TASK_RANK on host $HOSTNAME failed (Exit $code)"
  echo "hpclaunch: $failed" >&2
  sleep 2  # Flux passes on what was written
  ( [ -z "${PMI_FD-}" ] || exec {PMI_FD}>&-  # else Flux waits for this shell, too
    sleep 5
    flux job raise --severity=0 --type=exec "$FLUX_JOB_ID" "$failed" ) < /dev/null > /dev/null 2>&1 &
}
exit "$code"
HPCLAUNCH_RANK

flux run --nodes=2 --tasks-per-node=4 --exclusive -o exit-timeout=none -o exit-on-error -o cpu-affinity=per-task \
  bash -c "$rank_start" rank \
  python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'
