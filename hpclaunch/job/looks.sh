# What hpclaunch looks at where a job runs, for any sh: the first word names a function below. Nothing is changed.

# What a path is, and how the file begins.
kind_of() {
  if [ -d "$1" ]; then printf 'folder '; exit; fi
  [ -f "$1" ] || exit 1
  if [ -x "$1" ]; then printf 'program '; else printf 'file '; fi
  head -c 256 -- "$1"
}

# The files among these, from the folder $1, that are not there, each with a NUL. An absolute path whose folder
# is not there either may be on storage that only compute nodes have.
missing() {
  cd -- "$1" || exit 0
  shift
  for file; do
    case $file in /*) [ -d "${file%/*}" ] || continue;; esac
    [ -e "$file" ] || printf '%s\0' "$file"
  done
}

# The folder, if it is, or can be made, one that this user writes into; nothing is made yet.
usable_folder() {
  case $1 in /*) ;; *) echo "$1 is not an absolute path" >&2; exit 1 ;; esac
  there=$1
  until [ -e "$there" ]; do there=$(dirname -- "$there"); done
  [ -d "$there" ] || { echo "$there is not a folder" >&2; exit 1; }
  [ -w "$there" ] || { echo "$there is not writable" >&2; exit 1; }
  printf %s "$1"
}

# The telling lines of files, and when each was written: stat and grep put each name with a NUL before what they
# found. Of what ranks say they are the first lines will do: a program may say it at every step.
traces() {
  stat --printf='%n\0%Y\n' -- "$@"
  grep -r -D skip -aHZE -e "$SAID" -- "$@"
  grep -r -D skip -aHZEi -m 20000 -e "$RANK_SAID" -- "$@"
  exit 0
}

# A line of JSON that holds a traceback becomes the lines of that, each with the label of that line.
# shellcheck disable=SC2016  # of awk
JSON='{ at = index($0, "{") }
at && at < 82 && substr($0, at, 2) == "{\"" && index($0, "Traceback (") > at {
  gsub(/\\"/, "\"")
  label = substr($0, 1, index($0, "{") - 1)
  count = split($0, part, /\\n/)
  for (n = 1; n < count; n++) { print part[n]; part[n + 1] = label part[n + 1] }
  $0 = part[count]
}
1'

# What launchers report in the last run of a job that failed, the lines that may tell of an error with those
# before them, its end, and when which ranks ended. Its part of the log begins where the job's script has noted. NUL ends each part.
failures() {
  for folder; do
    log=$folder/out.log
    [ -f "$log" ] || continue
    read -r start 2> /dev/null < "$folder/log_start" || start=
    case $start in ''|*[!0-9]*) start=0;; esac
    part() { tail -c "+$((start + 1))" -- "$log" | tr -d '\000' | tr '\r' '\n' | awk "$JSON"; }
    printf '%s\000' "$folder"
    part | grep -aE -m 1000 -e "$RANKS" | cut -c 1-600; printf '\000'
    part | grep -anE -B 20 -m 40 -e "$ERRORS" | cut -c 1-600; printf '\000'
    part | tail -n 400 | cut -c 1-600; printf '\000'
    part | wc -l; printf '\000'
    [ ! -d "$folder/ends" ] || cat -- "$folder"/ends/* 2> /dev/null | tr -d '\000' | sort -n | head -n 1000; printf '\000'
    # In the order of their age: the ranks that have fallen silent come first.
    [ ! -d "$folder/stderr" ] || find "$folder/stderr" "$folder/stdout" -type f -printf '%T@ %f\n' 2> /dev/null |
      sort -n | cut -d ' ' -f 2 | grep -xE '[0-9]{1,7}' | tail -n 20000
    printf '\000'
  done
  exit 0
}

# The files that the program itself wrote while the job in folder $1 ran, below its working folder $2, by turns: the folder, then each
# name with its end, where that may tell of an error, and an empty name. No binary ones, no checkpoints, no environments of Python; names
# without a digit are those of one process. -I: lines with NUL bytes match nothing. The words are few: grep would take 40 ms to read those
# of all known errors, for each file.
own_files() {
  words='Traceback \(|[Ee]rror|ERROR|[Ee]xception|[Ff]atal|FATAL|CRITICAL|PANIC|panic|severe|STOP|[Aa]ssert|[Aa]bort|ABORT|[Ff]ail|No space|[Qq]uota'
  while [ $# -ge 2 ]; do
    printf '%s\000' "$1"
    start=$1/log_start end=$1/exit_status sent=0
    [ -f "$start" ] || start=$1/job.sh
    [ -f "$end" ] || end=$1/out.log
    cd -- "$2" 2> /dev/null && timeout 20 find . -mindepth 1 -maxdepth 3 \
      \( -name '.*' -o -name "${1##*/}" -o -name '*venv*' -o -name 'site-packages' -o -name '__pycache__' -o -name 'node_modules' \
      -o -iname '*checkpoint*' -o -iname '*ckpt*' -o -name "*
*" \) -prune -o -type f -path '*[0-9]*' ! -name '*.py' ! -name '*.pt' ! -name '*.npy' ! -name '*.h5' ! -name '*.nc' \
      ! -name '*.safetensors' -user "$(id -u)" -newer "$start" ! -newer "$end" -print 2> /dev/null |
      head -n 400 | sort | while IFS= read -r file; do
        printf '%s\000' "${file#./}"
        if [ "$sent" -lt 64 ] && tail -c 65536 -- "$file" | tail -n 60 | grep -qIE -e "$words"; then
          sent=$((sent + 1))
          tail -c 65536 -- "$file" | tr -d '\000' | tr '\r' '\n' | awk "$JSON" | tail -n 400 | cut -c 1-600
        fi
        printf '\000'
      done
    printf '\000'
    shift 2
  done
  exit 0
}

# The ends of the stderr and of the stdout of ranks: folder, rank and both, by turns.
rank_ends() {
  while [ $# -ge 2 ]; do
    printf '%s\000%s\000' "$1" "$2"
    for file in "$1/stderr/$2" "$1/stdout/$2"; do
      for each in "$file.before" "$file"; do [ ! -f "$each" ] || tail -c 300000 -- "$each"; done |
        tr -d '\000' | tr '\r' '\n' | awk "$JSON" | tail -n "$KEPT" | cut -c 1-600
      printf '\000'
    done
    shift 2
  done
  exit 0
}

"$@"
