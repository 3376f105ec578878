# Submits a job exactly once, for bash: the first word names a function below. submission.py knows the answers
# that begin with "hpclaunch:".

# The answer's last piece is its exit code, put there by a rename when all else is complete. Without one the
# shell that started the command was killed. The pipe waits for what the command leaves running with its stdout
# open; both its sides outlive the shell, should that be killed. Room for the answer is reserved before: the id
# of a job that was taken must not be lost because the disk is full by then.
submit_once() {
  token=$1 wait_s=$2 program=$3; shift 3
  command -v "$program" > /dev/null || { echo 'hpclaunch: no program'; exit 127; }
  if mkdir "$token" 2>/dev/null; then
    { printf '%1023s\n' '' > "$token/stdout" && echo > "$token/room"; } 2> /dev/null \
      || { rm -rf "$token"; echo 'hpclaunch: no room'; exit 74; }
    { "$@" 2> "$token/stderr" < /dev/null
      echo $? 1<> "$token/room"; } | {
      cat 1<> "$token/stdout"; read -r code < "$token/room" && [ "$code" ] && mv "$token/room" "$token/exit_code"; }
  elif [ ! -d "$token" ]; then
    mkdir "$token"; echo 'hpclaunch: no room'; exit 74
  fi
  waited=0
  until [ -e "$token/exit_code" ]; do
    [ "$waited" -lt "$wait_s" ] || { echo 'hpclaunch: begun, no answer'; exit 75; }
    sleep 1; waited=$((waited + 1))
  done
  cat "$token/stdout"; [ ! -s "$token/stderr" ] || cat "$token/stderr" >&2
  read -r code < "$token/exit_code"; exit "$code"
}

# Makes sure that a job whose submission has not begun is never submitted; exit status 3: it has begun.
prevent() {
  mkdir -p -- "${1%/*}" || exit 1
  if mkdir -- "$1" 2> /dev/null; then
    echo 'cancelled before it was submitted' > "$1/stderr"; : > "$1/stdout"; echo 1 > "$1/exit_code"
  elif [ -d "$1" ]; then
    exit 3
  else
    mkdir -- "$1"; exit 1
  fi
}

"$@"
