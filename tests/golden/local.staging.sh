#!/bin/bash

# Written by hpclaunch VERSION for local: This machine - the installed MPI's mpiexec on its own cores, measured when a job starts.
# 1 node x 2 ranks = 2 ranks.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 0  NUMA node 0
#   rank 1: CPUs 1  NUMA node 0

set -eo pipefail

# The folder of this job's log, result and exit status.
export HPCLAUNCH_JOB_ID="$$"
export HPCLAUNCH_JOB_FOLDER="$PWD/hpclaunch-$$"
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

# Ends the staging, and removes what was staged.
stage_control='' stage_nodes='' stage_reader=''
# shellcheck disable=SC2329  # the trap calls it
hpclaunch_unstage() {
  [ -z "$stage_reader" ] || kill "$stage_reader" 2> /dev/null || :
  [ -z "$stage_nodes" ] || { kill -TERM "$stage_nodes" 2> /dev/null; wait "$stage_nodes"; } || :
}

# The exit status is written however the job ends.
# shellcheck disable=SC2329  # the trap calls it
hpclaunch_end() {
  status=$?
  trap - EXIT
  hpclaunch_unstage
  # What the samples say, in one line; a job that is ended by a signal has no time for it.
  [ "$status" -ge 128 ] || timeout 10 bash "$HPCLAUNCH_JOB_FOLDER/sampler.sh" summary "$HPCLAUNCH_JOB_FOLDER/samples" "$HPCLAUNCH_JOB_ID" 2> /dev/null || :
  rm -rf -- "${hpclaunch_session:-}" || :
  hpclaunch_write exit_status "$status" || :
  exit "$status"
}
trap hpclaunch_end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# the Python and MPI of this hpclaunch, first
export PATH=/opt/env/bin:"$PATH"

# number of ranks of the job
export HPCLAUNCH_TASKS=2

# Open MPI (5, and 4) must not bind: a rank binds itself where cores are planned for it
export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none

# Open MPI (5, and 4) must not count cores: the plan did
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_rmaps_base_oversubscribe=1

# Open MPI refuses root, who is the only user in many containers
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# rendezvous: the job's first node
MASTER_ADDR=127.0.0.1
export MASTER_ADDR

# rendezvous: a port of this job's own, below the ephemeral range
export MASTER_PORT=$((10000 + $$ % 10000))

# threads for each rank: the cores it is bound to
export OMP_NUM_THREADS=1

# a new folder for the session files of mpiexec, which those of a killed mpiexec would end
session_file=$HPCLAUNCH_JOB_FOLDER/mpi_session.sh
# shellcheck source=/dev/null
if [ -r "$session_file" ]; then . "$session_file"; fi

# Staging: data are copied to storage of the nodes before the ranks start.
stage_root=${TMPDIR:-/tmp}/hpclaunch-${HPCLAUNCH_JOB_ID//[^A-Za-z0-9._-]/-}
stager=$HPCLAUNCH_JOB_FOLDER/stage.py
stage_items=(data "$stage_root"/data)
stage_control=$(mktemp -d "$HPCLAUNCH_JOB_FOLDER/staging.XXXXXX")
echo localhost > "$HPCLAUNCH_JOB_FOLDER/nodes"
python3 \
  "$stager" node "$stage_control" 1 keep "${stage_items[@]}" &
stage_nodes=$!
python3 "$stager" reader "$stage_control" 1 "$stage_nodes" "${stage_items[@]}" 2> "$stage_control/reason" &
stage_reader=$!
if ! wait "$stage_reader"; then
  cat "$stage_control/reason" >&2
  sed -n 's/^hpclaunch: //p' "$stage_control/reason" > "$HPCLAUNCH_JOB_FOLDER/reason"
  exit 1
fi
stage_reader=
wait "$stage_nodes" || :
stage_nodes=
export HPCLAUNCH_STAGED="$stage_root"/data

# Each rank reports its binding in this folder.
rm -rf "$HPCLAUNCH_JOB_FOLDER/binding" || :
mkdir "$HPCLAUNCH_JOB_FOLDER/binding" || :

# The samples of each node, a file per node; those of runs before a restart stay.
mkdir -p "$HPCLAUNCH_JOB_FOLDER/samples" || :

# What each rank last wrote to its stderr, in this run.
rm -rf "$HPCLAUNCH_JOB_FOLDER/stderr" || :
mkdir "$HPCLAUNCH_JOB_FOLDER/stderr" || :

# Each rank is a shell that runs these lines and then becomes the program.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
# the rank, as the variables that torch.distributed and others read
export RANK="${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID}" WORLD_SIZE=2
# CPUs planned for each local rank
cpus=(0 1)
# NUMA nodes of each local rank's cores
numa=(0 0)
# bind this shell, and so the program that it becomes (man taskset)
taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null
# Its stderr goes to the launcher and, the end of it, to a file: launchers lose lines when they end a job.
[ ! -r "$HPCLAUNCH_JOB_FOLDER/rank_stderr.sh" ] || . "$HPCLAUNCH_JOB_FOLDER/rank_stderr.sh" "$HPCLAUNCH_JOB_FOLDER" "$RANK"
# The binding that this rank has, read from /proc and /sys and compared with the plan: one line in the job's folder.
# In a function, so that no variable of the program's environment is changed.
hpclaunch_report() {
  local root key value got_cpus='' got_mems='' mems_shown policy host verdict=ok node range rest here report
  local foreign='' doubt=''
  root=${HPCLAUNCH_SYSROOT:-}
  while read -r key value; do
    case $key in
      Cpus_allowed_list:) got_cpus=$value ;;
      Mems_allowed_list:) got_mems=$value ;;
    esac
  done < "$root/proc/self/status"
  # A memory policy (numactl, srun --mem-bind) stands in numa_maps, and the program inherits it. It is written as Linux
  # 6.12 does (mm/mempolicy.c); "prefer (many)" is there from 5.15 on, "weighted interleave" from 6.9 on.
  mems_shown=$got_mems
  if read -r _ policy 2> /dev/null < "$root/proc/self/numa_maps"; then
    policy=${policy/#'prefer (many)'/prefer-many} policy=${policy/#weighted /weighted-} policy=${policy%% *}
    case $policy in
      bind*:* | prefer-many*:*) got_mems=${policy##*:} ;;
      prefer*:* | interleave*:* | weighted-interleave*:*) foreign=${policy##*:} ;;  # pages go to all of these nodes
      default | local) ;;
      *) doubt=1 ;;
    esac
    case $policy in bind*) mems_shown=$got_mems ;; *:*) mems_shown=$policy ;; esac
  fi
  read -r host < "$root/proc/sys/kernel/hostname"
  [ "$got_cpus" = "${cpus[LOCAL_RANK]}" ] || verdict='cpus-differ'
  # Memory must be allowed on each NUMA node of the rank's cores; more nodes may be allowed.
  for node in ${numa[LOCAL_RANK]//,/ }; do
    here='' rest=${got_mems:-$node},
    while [ "$rest" ]; do
      range=${rest%%,*} rest=${rest#*,}
      if [ "${range%-*}" -le "$node" ] && [ "$node" -le "${range#*-}" ]; then here=1; fi
    done
    [ "$here" ] || verdict='memory-on-another-numa-node'
  done
  # A policy that prefers or interleaves may name the rank's own nodes only.
  rest=${foreign:+$foreign,}
  if [ -z "${numa[LOCAL_RANK]}" ]; then doubt+=$rest rest=''; fi
  while [ "$rest" ]; do
    range=${rest%%,*} rest=${rest#*,}
    for ((node = ${range%-*}; node <= ${range#*-}; node++)); do
      case ,${numa[LOCAL_RANK]}, in *,"$node",*) ;; *) verdict='memory-on-another-numa-node' ;; esac
    done
  done
  [ "$verdict" != ok ] || [ -z "$doubt" ] || verdict='not-judged'
  printf -v report 'hpclaunch-binding rank=%s host=%s local_rank=%s cpus=%s planned=%s mems=%s gpus=%s bus=%s gpu_numa=%s verdict=%s' \
    "$RANK" "$host" "$LOCAL_RANK" "$got_cpus" "${cpus[LOCAL_RANK]}" "${mems_shown:-unknown}" \
    none '' '' "$verdict"
  # One file per node: appending to one file from several nodes is not safe on NFS. Without room there: the log.
  { printf '%s\n' "$report" >> "$HPCLAUNCH_JOB_FOLDER/binding/$host"; } 2> /dev/null || printf '%s\n' "$report"
  ( hpclaunch_watch $$ "$got_cpus" "$HPCLAUNCH_JOB_FOLDER/binding/$host" & ) < /dev/null > /dev/null 2>&1
}
# Look again while the program runs: libraries bind threads, and wrappers rebind programs. This shell sleeps between its
# looks, is not a child of the program, holds none of its files, and ends with it. What is new is a line in the same file.
hpclaunch_watch() {
  local process=$1 at_start=$2 file=$3 fd never task at=0 kids kid list name found='' written=- next=2 step=2 n
  local -a tasks lines
  local -A seen
  cd "${HPCLAUNCH_SYSROOT:-}/proc/$process" || return  # stays this process, also when its number is used again
  trap '' INT USR1 USR2
  for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    [ "$fd" -le 2 ] || exec {fd}>&-
  done
  exec {never}<> <(:)  # a pipe in which nothing arrives: waiting for it needs no process
  SECONDS=0
  while [ -e task ]; do
    read -rt $((step > 60 ? 5 : 1)) -u "$never" || :
    [ "$SECONDS" -ge "$next" ] || continue
    tasks=(task/*)
    for ((n = 0; n < ${#tasks[@]}; n++)); do
      task=${tasks[n]} lines=() kids=''
      mapfile -t lines < "$task/status"
      read -r kids < "$task/children" || :
      for kid in $kids; do tasks+=("/proc/$kid/task/"*); done
      # The line is at the same place in most of them; none: it has ended.
      if [[ ${lines[at]:-} != Cpus_allowed_list:* ]]; then
        for ((at = ${#lines[@]} - 1; at > 0; at--)); do [[ ${lines[at]} != Cpus_allowed_list:* ]] || break; done
      fi
      [ "$at" -gt 0 ] || continue
      list=${lines[at]#Cpus_allowed_list:?}
      [ "$list" != "$at_start" ] && [ -z "${seen[$list]:-}" ] || continue
      name=${lines[0]#*:?}
      seen[$list]=1 found+=${found:+;}$list@${name//[^a-zA-Z0-9_.:-]/_}
    done
    if [ "$found" != "$written" ]; then
      printf 'hpclaunch-later rank=%s found=%s\n' "$RANK" "$found" >> "$file"
      written=$found
    fi
    step=$((step < 150 ? 2 * step : 300)) next=$((SECONDS + step))
  done
}
hpclaunch_report
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

mpiexec -n 2 \
  bash -c "$rank_start" rank \
  /opt/env/bin/python3 -m hpclaunch.train --epochs 3 --data '/data/my mnist'
