# For sh: a file on another machine, written whole.

# $1: another name in the folder of $2, the file; $3: its mode; $4: its size. A connection that is lost ends
# stdin early. dd: fsync, where the file system knows it.
write_file() {
  set -e
  umask 077
  new=$1
  [ ! -d "$2" ] || { echo "Is a directory" >&2; exit 1; }
  trap 'rm -f -- "$new"' EXIT
  dd of="$new" bs=1M conv=excl,fsync status=none
  [ "$(wc -c < "$new")" -eq "$4" ]
  chmod "$3" "$new"
  mv -f -T -- "$new" "$2"
}

"$@"
