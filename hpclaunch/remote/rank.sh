# shellcheck shell=bash
# What the shell of a rank does between its lines in the job's script and the program, which are its arguments. It has
# RANK and LOCAL_RANK, the variables of plan.sh and the functions of the files that plan.sh names. It reads no file of
# a shared file system, but for the sampler's on the node's first rank.

# Each rank notes its process, and local rank 0 of each node starts the sampler: one process that reads counters of CPU,
# memory, GPUs and energy for hpclaunch report, and ends with that rank. --no-sample leaves it out.
hpclaunch_sample() {
  local host
  read -r host < /proc/sys/kernel/hostname
  host=$HPCLAUNCH_JOB_FOLDER/samples/$host
  { printf 'rank %s %s %(%s)T\n' "$RANK" $$ -1 >> "$host"; } 2> /dev/null || return 0
  [ "$LOCAL_RANK" != 0 ] || ( bash "$HPCLAUNCH_FILES/sampler.sh" $$ "$hpclaunch_sample_s" "$host" & ) < /dev/null > /dev/null 2>&1
}

# Run the program and live through the signal that is meant for it: launchers signal all of a rank's processes. Nothing is
# local, since the program would see it.
hpclaunch_run() {
  hpclaunch_code=0
  trap : HUP INT QUIT USR1 USR2 TERM
  exec {hpclaunch_stderr}>&2 2> /dev/null  # bash writes there that a signal has ended the program
  "$@" 2>&"$hpclaunch_stderr" {hpclaunch_stderr}>&- || hpclaunch_code=$?
  exec 2>&"$hpclaunch_stderr" {hpclaunch_stderr}>&-
  if [ "$hpclaunch_supervised" ] && [ "$hpclaunch_code" = "$HPCLAUNCH_CHECKPOINT_EXIT_CODE" ]; then
    [ "$RANK" != 0 ] || : > "$HPCLAUNCH_JOB_FOLDER/checkpointed" || exit "$hpclaunch_code"
    exit 0
  fi
  [ -z "$hpclaunch_rank_over" ] || "$hpclaunch_rank_over" "$hpclaunch_code"
  exit "$hpclaunch_code"
}

# torchrun has started its workers again (--max-restarts): rank 0 counts it, over all runs of the job.
hpclaunch_count_restart() {
  local before=0
  { read -r before < "$HPCLAUNCH_JOB_FOLDER/worker_restarts"; } 2> /dev/null
  printf '%s\n' $((before + 1)) > "$HPCLAUNCH_JOB_FOLDER/worker_restarts"
}

[ "$RANK" != 0 ] || [ "${TORCHELASTIC_RESTART_COUNT:-0}" = 0 ] || hpclaunch_count_restart
[ "${#hpclaunch_private[@]}" = 0 ] || hpclaunch_private_folders "${hpclaunch_private[@]}"
[ -z "$hpclaunch_guard" ] || "$hpclaunch_guard" "$@"
hpclaunch_keep_last_words "$HPCLAUNCH_JOB_FOLDER" "$RANK"
[ -z "$hpclaunch_at_start" ] || hpclaunch_bind_here
[ -z "$hpclaunch_binding" ] || hpclaunch_report
[ "$hpclaunch_sample_s" = 0 ] || hpclaunch_sample
[ -z "$hpclaunch_supervised$hpclaunch_rank_over" ] || hpclaunch_run "$@"
# Become the program, which has no other child left of this shell.
[ -z "${hpclaunch_copier:-}" ] || wait "$hpclaunch_copier"
exec -- "$@"
