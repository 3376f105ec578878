# shellcheck shell=bash
# Staging: data are copied to storage of the nodes before the ranks start. job_start.sh sources this file.
#
# From plan.sh: hpclaunch_nodes, hpclaunch_stage_links, hpclaunch_stage_after (see stage.py), and the functions
# hpclaunch_node_names and hpclaunch_per_node, which starts one process on each node.

hpclaunch_timeout='' hpclaunch_stage_control='' hpclaunch_stage_nodes='' hpclaunch_stage_reader=''

# Ends the staging, and removes what was staged.
hpclaunch_unstage() {
  local signal=TERM
  [ -z "$hpclaunch_stage_reader" ] || kill "$hpclaunch_stage_reader" 2> /dev/null || :
  [ "$hpclaunch_stage_after" != stay ] || signal=USR1
  [ -z "$hpclaunch_stage_nodes" ] \
    || { kill -"$signal" "$hpclaunch_stage_nodes" 2> /dev/null; wait "$hpclaunch_stage_nodes"; } || :
  case $hpclaunch_stage_after in leave | here) ;; *) return 0 ;; esac
  [ -z "$hpclaunch_stage_control" ] || hpclaunch_timeout='timeout 120' hpclaunch_per_node \
    python3 "$HPCLAUNCH_FILES/stage.py" remove "$hpclaunch_stage_control" "$hpclaunch_nodes" - - "${hpclaunch_stage_items[@]}" \
    || echo "hpclaunch: not all that was staged could be removed: ${hpclaunch_stage_items[*]}" >&2
}
hpclaunch_at_end+=(hpclaunch_unstage)

# The items SOURCE TARGET ... with the place of each target: absolute, or in the folder of this job in the nodes'
# storage $1. Its name cannot be known by other users before it is made; it stays that of the job.
hpclaunch_place_items() {
  local folder target key=("$HPCLAUNCH_JOB_FOLDER"/staging_key.*)
  [ -e "${key[0]}" ] || key=("$(mktemp "$HPCLAUNCH_JOB_FOLDER/staging_key.XXXXXXXXXXXX")")
  folder=$1/hpclaunch-${HPCLAUNCH_JOB_ID//[^A-Za-z0-9._-]/-}${HPCLAUNCH_ARRAY_INDEX:+-$HPCLAUNCH_ARRAY_INDEX}-${key[0]##*.}
  hpclaunch_stage_items=() HPCLAUNCH_STAGED=''
  while shift && [ $# -gt 1 ]; do
    case $2 in /*) target=$2 ;; *) target=$folder/$2 ;; esac
    hpclaunch_stage_items+=("$1" "$target")
    HPCLAUNCH_STAGED+=${HPCLAUNCH_STAGED:+:}$target
    shift
  done
}

# Copy: STORAGE SOURCE TARGET ...; HPCLAUNCH_STAGED has the targets afterwards.
hpclaunch_stage() {
  local stager=$HPCLAUNCH_FILES/stage.py
  hpclaunch_place_items "$@"
  hpclaunch_stage_control=$(mktemp -d "$HPCLAUNCH_JOB_FOLDER/staging.XXXXXX")
  hpclaunch_node_names > "$HPCLAUNCH_JOB_FOLDER/nodes"
  hpclaunch_per_node python3 "$stager" node "$hpclaunch_stage_control" "$hpclaunch_nodes" "$hpclaunch_stage_after" - \
    "${hpclaunch_stage_items[@]}" &
  hpclaunch_stage_nodes=$!
  python3 "$stager" reader "$hpclaunch_stage_control" "$hpclaunch_nodes" "$hpclaunch_stage_nodes" "$hpclaunch_stage_links" \
    "${hpclaunch_stage_items[@]}" 2> "$hpclaunch_stage_control/reason" &
  hpclaunch_stage_reader=$!
  if ! wait "$hpclaunch_stage_reader"; then
    cat "$hpclaunch_stage_control/reason" >&2
    sed -n 's/^hpclaunch: //p' "$hpclaunch_stage_control/reason" > "$HPCLAUNCH_JOB_FOLDER/reason"
    exit 1
  fi
  hpclaunch_stage_reader=
  if [ "$hpclaunch_stage_after" != stay ]; then
    wait "$hpclaunch_stage_nodes" || :
    hpclaunch_stage_nodes=
  fi
  export HPCLAUNCH_STAGED
}
