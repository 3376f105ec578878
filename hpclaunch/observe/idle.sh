# For sh: how long a job has been silent.

# $@: its files. Seconds since the last of them was written; nothing where there is none.
idle_s() {
  last=$(stat -c %Y -- "$@" 2> /dev/null | sort -n | tail -n 1)
  [ -z "$last" ] || echo $(($(date +%s) - last))
}

"$@"
