# For bash: what hpclaunch fetch may bring from where a job ran. Nothing is changed.

# $@: the words of find. NUL ends type, size, time, mode and path; base64 carries names that are not UTF-8.
find_files() {
  set -o pipefail
  export LC_ALL=C
  find "$@" -printf '%y\0%s\0%T@\0%m\0%p\0' | base64
}

"$@"
