# shellcheck shell=bash
# The start of a job on its first node, and how its end is kept. The job's script sources this file (bash 4.1 or newer).
#
# From the script: HPCLAUNCH_JOB_FOLDER, for this job's log, result and exit status, and HPCLAUNCH_FILES, the folder of
# this file and of plan.sh, in which the plan of the job stands as variables. Sets rank_end, the text that each rank's
# shell runs after its lines in the script: so the ranks read none of these files from a shared file system.

# shellcheck source=/dev/null
. "$HPCLAUNCH_FILES/plan.sh"

# Write text $2 to file $1 of the job's folder, into the reserved room; the file appears whole or not at all.
hpclaunch_write() {
  printf '%s\n' "$2" 1<> "$HPCLAUNCH_JOB_FOLDER/$1.new" && mv "$HPCLAUNCH_JOB_FOLDER/$1.new" "$HPCLAUNCH_JOB_FOLDER/$1"
}

# Make job $1 the next one of this job's chain. A next job that cannot be recorded is cancelled: it must not run unseen.
hpclaunch_hand_over() {
  [ "$1" ] || return 1
  if ! hpclaunch_write next_id "$1"; then
    hpclaunch_cancel "${1%%;*}" || :
    return 1
  fi
  hpclaunch_restarting=1  # the end of this run is not the job's end: it leaves no exit status, and is not a success
}

# The exit status is written however the job ends, after the functions of hpclaunch_at_end.
hpclaunch_at_end=()
hpclaunch_end() {
  local status=$? part
  trap - EXIT
  for part in "${hpclaunch_at_end[@]}"; do "$part" "$status" || :; done
  hpclaunch_write exit_status "$status" || :
  exit "$status"
}

hpclaunch_free_room() {
  local file
  for file in "${hpclaunch_kept[@]:1}"; do rm -f "$HPCLAUNCH_JOB_FOLDER/$file.new"; done  # reserved and not used
  [ -z "${hpclaunch_restarting:-}" ] || exit "$1"
}

# What the samples say, in one line; a job that is ended by a signal has no time for it.
hpclaunch_summary() {
  [ "$hpclaunch_sampled" ] || [ "$SECONDS" -ge "$hpclaunch_sample_s" ] || return 0  # too short for one
  [ "$1" -ge 128 ] || timeout 10 bash "$HPCLAUNCH_FILES/sampler.sh" summary "$HPCLAUNCH_JOB_FOLDER/samples" "$HPCLAUNCH_JOB_ID" 2> /dev/null
}

hpclaunch_end_session() {
  [ -z "${hpclaunch_session:-}" ] || rm -rf -- "$hpclaunch_session"
}

# The folder, without what an earlier run of this job left there about its end.
hpclaunch_prepare_folder() {
  local file
  [ -d "$HPCLAUNCH_JOB_FOLDER" ] || mkdir -p "$HPCLAUNCH_JOB_FOLDER"
  # The job's log, in which a run that comes back writes on.
  [ -z "$hpclaunch_own_log" ] || exec >> "$HPCLAUNCH_JOB_FOLDER/out.log" 2>&1
  for file in exit_status reason log_start; do
    [ ! -e "$HPCLAUNCH_JOB_FOLDER/$file" ] || rm -f "$HPCLAUNCH_JOB_FOLDER/$file"
  done
  # Where the log of this run begins, and when.
  { wc -c < "$HPCLAUNCH_JOB_FOLDER/out.log" > "$HPCLAUNCH_JOB_FOLDER/log_start"; } 2> /dev/null || :
  # Room for the files that report how the job ended is reserved now: at the end the disk or quota may be full.
  for file in "${hpclaunch_kept[@]}"; do echo > "$HPCLAUNCH_JOB_FOLDER/$file.new" || :; done
}

# Where the ranks report: their bindings, ends and last words in this run; the samples of runs before a restart stay.
hpclaunch_prepare_reports() {
  local folder made=()
  hpclaunch_sampled=
  [ ! -d "$HPCLAUNCH_JOB_FOLDER/samples" ] || hpclaunch_sampled=1
  for folder in ${hpclaunch_binding:+binding} ends stderr stdout; do
    [ ! -e "$HPCLAUNCH_JOB_FOLDER/$folder" ] || rm -rf "${HPCLAUNCH_JOB_FOLDER:?}/$folder" || :
    [ "$folder$hpclaunch_tasks" = stdout1 ] || made+=("$HPCLAUNCH_JOB_FOLDER/$folder")
  done
  [ "$hpclaunch_sample_s" = 0 ] || made+=("$HPCLAUNCH_JOB_FOLDER/samples")
  mkdir -p "${made[@]}" || :
}

export HPCLAUNCH_RESULT_FILE=$HPCLAUNCH_JOB_FOLDER/result.json
hpclaunch_prepare_folder
trap hpclaunch_end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
for hpclaunch_file in "${hpclaunch_job_files[@]}"; do
  # shellcheck source=/dev/null
  . "$HPCLAUNCH_FILES/$hpclaunch_file"
done
hpclaunch_at_end+=(hpclaunch_free_room)
[ "$hpclaunch_sample_s" = 0 ] || hpclaunch_at_end+=(hpclaunch_summary)
hpclaunch_at_end+=(hpclaunch_end_session)
if [ "${#hpclaunch_private[@]}" != 0 ]; then
  read -r HPCLAUNCH_KEY < /proc/sys/kernel/random/uuid  # for names in /tmp that no other user can foresee
  export HPCLAUNCH_KEY
fi
hpclaunch_prepare_reports
# Of the plan the variables only: what else it does is for the job's shell. Comments are left out.
# shellcheck disable=SC2034  # the script hands it to the ranks
rank_end=$(cd "$HPCLAUNCH_FILES" && awk 'NR == FNR ? /^hpclaunch_[a-z_]*=/ : !/^ *#/' plan.sh "${hpclaunch_rank_files[@]}")
