# shellcheck shell=bash
# Supervision of a launch: a signal before the walltime limit, restarts from a checkpoint, a watchdog. job_start.sh
# sources this file; the script then starts its launch with hpclaunch_supervise.
#
# From plan.sh: hpclaunch_exit_code, hpclaunch_max_restarts, hpclaunch_timer_s (seconds to the signal where the scheduler
# gives none), hpclaunch_idle_s (0: no watchdog), hpclaunch_nodes, hpclaunch_look_s, and the functions hpclaunch_look,
# hpclaunch_node_names, hpclaunch_requeue and hpclaunch_submit_again, in the words of the scheduler.

export HPCLAUNCH_CHECKPOINT_SIGNAL=USR1  # what a program gets when it must write a checkpoint and leave
export HPCLAUNCH_CHECKPOINT_EXIT_CODE=$hpclaunch_exit_code  # what it leaves with: "call me again"
HPCLAUNCH_RESTART=0  # how often this job was restarted from a checkpoint
if [ -r "$HPCLAUNCH_JOB_FOLDER/restarts" ]; then read -r HPCLAUNCH_RESTART < "$HPCLAUNCH_JOB_FOLDER/restarts"; fi
export HPCLAUNCH_RESTART
export HPCLAUNCH_HEARTBEAT=$HPCLAUNCH_JOB_FOLDER/heartbeat  # a program that prints nothing may touch this file
export PYTHONUNBUFFERED=1  # the watchdog and people read the log while it is written
rm -f "$HPCLAUNCH_JOB_FOLDER/checkpointed"
hpclaunch_launcher='' hpclaunch_timer='' hpclaunch_watchdog=''

# Where a signal has ended this shell, what it started must not go on alone.
hpclaunch_end_launch() {
  local child i
  for child in "$hpclaunch_timer" "$hpclaunch_watchdog"; do [ -z "$child" ] || kill -KILL "$child" 2> /dev/null || :; done
  if [ "$hpclaunch_launcher" ] && kill -TERM "$hpclaunch_launcher" 2> /dev/null; then
    for ((i = 0; i < 50; i++)); do kill -0 "$hpclaunch_launcher" 2> /dev/null || break; sleep 0.1; done
    kill -KILL "$hpclaunch_launcher" 2> /dev/null || :
  fi
}
hpclaunch_at_end+=(hpclaunch_end_launch)

# Waiting needs no process but the shell that waits, so nothing is left when that is killed. KILL: a shell that is
# just starting can lose a TERM.
hpclaunch_sleep() {
  read -rt "$1" <> <(:) || :  # a pipe in which nothing arrives
}
hpclaunch_stop() {
  { kill -KILL "$1" && wait "$1"; } 2> /dev/null || :  # wait: bash reports the end there, not in the log
}

# --- the watchdog: no output and no heartbeat for hpclaunch_idle_s is a hang ---------------------------------------

hpclaunch_idle() {  # seconds since the last output or heartbeat
  local last
  last=$(stat -c %Y "$HPCLAUNCH_JOB_FOLDER/out.log" "$HPCLAUNCH_HEARTBEAT" 2> /dev/null | sort -n | tail -n 1) || :
  echo $((${last:+$(date +%s) - last}))
}

# Where each rank stands, asked on each node before the job is ended: hpclaunch stacks does the same.
hpclaunch_roll_call() {
  local answers
  [ "$hpclaunch_stands" ] || return 0
  hpclaunch_node_names > "$HPCLAUNCH_JOB_FOLDER/nodes"
  answers=$(hpclaunch_look < /dev/null 2> /dev/null) || :
  python3 -I -c "$hpclaunch_roll_call_program" "$HPCLAUNCH_JOB_FOLDER" "$HPCLAUNCH_TASKS" "$hpclaunch_nodes" "$1" <<< "$answers" \
    || echo 'hpclaunch: stacks: where the ranks stand could not be read' || :
}

hpclaunch_watch_output() {
  local idle
  while hpclaunch_sleep $((hpclaunch_idle_s > 7 ? hpclaunch_idle_s / 4 : 1)); do
    idle=$(hpclaunch_idle)
    [ "$idle" -ge "$hpclaunch_idle_s" ] || continue
    hpclaunch_roll_call "$idle" > "$HPCLAUNCH_JOB_FOLDER/stacks.txt" || :  # whatever fails, the job is ended
    [ "$(hpclaunch_idle)" -ge "$hpclaunch_idle_s" ] || continue  # it has gone on meanwhile
    cat "$HPCLAUNCH_JOB_FOLDER/stacks.txt" || :
    hpclaunch_write reason "hung: no output and no heartbeat for $hpclaunch_idle_s s; ended by --idle-timeout" || :
    kill -TERM "$hpclaunch_launcher"
    hpclaunch_sleep 10
    kill -KILL "$hpclaunch_launcher"
    break
  done
}

hpclaunch_start_watchdog() {
  [ "$hpclaunch_idle_s" != 0 ] || return 0
  rm -f "$HPCLAUNCH_JOB_FOLDER/hang" "$HPCLAUNCH_JOB_FOLDER/stacks.json"
  # The programs of the roll call are read now: later the file system may be what hangs.
  hpclaunch_stands=$(cat "$HPCLAUNCH_FILES/stacks/stands.py" 2> /dev/null) || hpclaunch_stands=
  hpclaunch_roll_call_program=$(cat "$HPCLAUNCH_FILES/stacks/roll_call.py" 2> /dev/null) || hpclaunch_stands=
  hpclaunch_watch_output &
  hpclaunch_watchdog=$!
}

# --- the launch and what comes after it -----------------------------------------------------------------------------

# Wait for the launcher, whose exit status becomes hpclaunch_status.
hpclaunch_await() {
  while hpclaunch_caught='' hpclaunch_status=0; do
    wait "$hpclaunch_launcher" || hpclaunch_status=$?
    # A caught signal makes wait return 128+N before the launcher has ended.
    [ "$hpclaunch_caught" ] && [ "$hpclaunch_status" -gt 128 ] || break
  done
  hpclaunch_launcher=
}

# From the checkpoint on the job is not done: each way out has an exit status that says so.
hpclaunch_not_restarted() {
  hpclaunch_write reason "checkpointed, $1" || echo "hpclaunch: checkpointed, $1" || :
  exit "$hpclaunch_exit_code"
}

hpclaunch_requeued() {
  hpclaunch_restarting=1  # the end of this run is not the job's end: it leaves no exit status, and is not a success
  trap 'exit "$hpclaunch_exit_code"' TERM
  if hpclaunch_requeue; then
    sleep 60 & wait $! || :  # until this run is ended for that
    exit "$hpclaunch_exit_code"
  fi
  trap 'exit 143' TERM
  hpclaunch_restarting=
}

hpclaunch_restart() {
  local next
  [ "$HPCLAUNCH_RESTART" -lt "$hpclaunch_max_restarts" ] \
    || hpclaunch_not_restarted "and no restart is left (--max-restarts $hpclaunch_max_restarts)"
  hpclaunch_write restarts $((HPCLAUNCH_RESTART + 1)) \
    || hpclaunch_not_restarted "but not restarted: $HPCLAUNCH_JOB_FOLDER cannot be written (disk or quota full?); make room, then hpclaunch resubmit"
  echo "hpclaunch: checkpointed; restart $((HPCLAUNCH_RESTART + 1)) of $hpclaunch_max_restarts" || :
  [ "$hpclaunch_comes_back" ] || exec bash "$0"
  hpclaunch_requeued
  [ -z "${HPCLAUNCH_ARRAY_INDEX:-}" ] \
    || hpclaunch_not_restarted "but it may not requeue itself here, and a job of an array has no other way to come back"
  echo 'hpclaunch: this job may not requeue itself here, so the next job of a chain takes over' || :
  next=$(hpclaunch_submit_again) || next=
  hpclaunch_hand_over "$next" \
    || hpclaunch_not_restarted "but neither requeued nor followed: the log says why; hpclaunch resubmit starts it again"
  exit "$hpclaunch_exit_code"
}

# Run the arguments, which start all ranks, and end the job. No variable is local: of one in the environment of the
# program the launcher would get the local value.
hpclaunch_supervise() {
  "$@" &
  hpclaunch_launcher=$!
  trap 'hpclaunch_caught=1; kill -USR1 "$hpclaunch_launcher" 2> /dev/null || :' USR1  # it hands the signal on to every rank
  if [ "$hpclaunch_timer_s" != 0 ]; then
    # The scheduler gives no signal before the walltime limit: this shell sends it to itself.
    ( hpclaunch_sleep "$hpclaunch_timer_s"; kill -USR1 $$ ) &
    hpclaunch_timer=$!
  fi
  hpclaunch_start_watchdog
  hpclaunch_await
  [ -z "$hpclaunch_timer" ] || hpclaunch_stop "$hpclaunch_timer"
  [ -z "$hpclaunch_watchdog" ] || hpclaunch_stop "$hpclaunch_watchdog"
  hpclaunch_timer='' hpclaunch_watchdog=''
  if [ "$hpclaunch_idle_s" != 0 ] && grep -q '^hung:' "$HPCLAUNCH_JOB_FOLDER/reason" 2> /dev/null; then exit 124; fi
  if [ -e "$HPCLAUNCH_JOB_FOLDER/checkpointed" ] && [ "$hpclaunch_status" = 0 ]; then hpclaunch_restart; fi
  exit "$hpclaunch_status"
}
