# shellcheck shell=bash
# Preflight: one process per node checks it before the ranks start. A node that fails is named, and the job ends.
# job_start.sh sources this file, the script calls hpclaunch_preflight.
#
# From plan.sh: hpclaunch_max_restarts and the functions hpclaunch_node_names, hpclaunch_probe (on all nodes, the path of
# probe.py in $probe), hpclaunch_verdict (reads their answers; the nodes follow) and, to begin again without the nodes
# of $left_out, hpclaunch_submit_without.

# Submit again, without the nodes that have failed.
hpclaunch_leave_out() {
  local left_out next restarts=0
  sed -n 's/^hpclaunch-preflight {"host": "\([^"]*\)".*"status": "missing".*/\1/p' \
    "$preflight.words" >> "$HPCLAUNCH_JOB_FOLDER/left_out"
  left_out=$(sort -u "$HPCLAUNCH_JOB_FOLDER/left_out" | paste -sd,)
  if [ -r "$HPCLAUNCH_JOB_FOLDER/restarts" ]; then read -r restarts < "$HPCLAUNCH_JOB_FOLDER/restarts"; fi
  if [ "$left_out" ] && [ "$restarts" -lt "$hpclaunch_max_restarts" ] \
    && hpclaunch_write restarts $((restarts + 1)) && next=$(hpclaunch_submit_without) && hpclaunch_hand_over "$next"; then
    echo "hpclaunch: once more without $left_out: restart $((restarts + 1)) of $hpclaunch_max_restarts" || :
    exit 1
  fi
}

hpclaunch_preflight() {
  local probe=$HPCLAUNCH_FILES/probe.py preflight=$HPCLAUNCH_JOB_FOLDER/preflight
  local -a nodes
  hpclaunch_node_names > "$HPCLAUNCH_JOB_FOLDER/nodes"
  mapfile -t nodes < "$HPCLAUNCH_JOB_FOLDER/nodes"
  hpclaunch_probe > "$preflight.now" || echo "hpclaunch: the launch of the preflight ended with exit status $?"
  cat "$preflight.now" >> "$preflight"  # after those of earlier runs
  if ! hpclaunch_verdict "${nodes[@]}" < "$preflight.now" > "$preflight.words"; then
    grep -v ^hpclaunch- "$preflight.words" || :
    grep ^hpclaunch- "$preflight.words" >> "$preflight" || :  # the nodes that gave no answer
    [ -z "$hpclaunch_leaves_out" ] || hpclaunch_leave_out
    grep -v ^hpclaunch- "$preflight.words" > "$HPCLAUNCH_JOB_FOLDER/reason"
    exit 1
  fi
}
