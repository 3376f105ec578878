# shellcheck shell=bash
# EESSI's container: its image is pulled once and then used by all ranks and later jobs. job_start.sh sources this file.

# Pull the image at address $1 to file $2, unless it is there. It gets its name when it is whole.
hpclaunch_pull() {
  local part why
  [ ! -x "$2" ] || return 0
  (umask 077; mkdir -p "${2%/*}")
  part=$(mktemp -d "${2%/*}/part.XXXXXX")
  singularity pull "$part/image" "$1" || {
    rm -rf "$part"
    why="EESSI's image cannot be pulled here: on a login node run singularity pull $2 $1"
    echo "hpclaunch: $why" >&2
    echo "$why" > "$HPCLAUNCH_JOB_FOLDER/reason"
    exit 1
  }
  chmod +x "$part/image"
  mv "$part/image" "$2"
  rmdir "$part"
}

# The image at address $1 in folder $2, else in the user's cache, and what eessi_container.sh reads. A cache where every
# user may write counts only if the job names it: another user's image may be there, and the job's other nodes do not
# see it.
hpclaunch_prepare_eessi() {
  local cache=${SINGULARITY_CACHEDIR:-$HOME/.cache}
  case $cache/ in /tmp/* | /var/tmp/* | /dev/shm/*) cache=$HOME/.cache ;; esac
  export hpclaunch_eessi=${2:-$cache/hpclaunch-eessi}/build-node_debian12.sif
  hpclaunch_pull "$1" "$hpclaunch_eessi"
  # eessi_container.sh adds to the one, and Apptainer would read the other instead.
  export SINGULARITY_BIND="${SINGULARITY_BIND:-${APPTAINER_BIND:-}}"
  unset APPTAINER_BIND
  # The user's home folder in the container; without it eessi_container.sh makes an empty one.
  export SINGULARITY_HOME="${SINGULARITY_HOME:-$HOME}"
}
