# shellcheck shell=bash
# Makes the folders that variables name, on this node: hpclaunch_private_folders, in a rank's shell, with their names.
#
# They stand in folders where every user may write (/tmp, /dev/shm), under names that can be foreseen, and hold what
# programs run: compiled kernels. So a folder that is there counts only if it is this user's own, no link, and writable
# by nobody else. Where it is not, the variable gets another name, which has the key of this job in it: no other user
# can know that before the folder is made. All ranks of a node find the same folder.

# Is a folder this user's own, and can no other user put something else in its place? Each part of the path is looked at
# once, from / on, and not followed: of two looks at a name of another user's the second may meet something else. The
# parts above belong to this user or to the owner of / (in a user namespace root may have another number), and others
# cannot write to them or, by the sticky bit, cannot exchange what is not theirs.
hpclaunch_is_own() {
  local path=$1 one owner mode
  local -a parts=() found
  case $path in /*) ;; *) return 1 ;; esac
  while [ "$path" ]; do
    parts=("$path" ${parts[@]+"${parts[@]}"})
    path=${path%/*}
  done
  mapfile -t found < <(stat -c '%u 0x%f' -- / "${parts[@]}" 2> /dev/null)
  [ "${#found[@]}" -gt "${#parts[@]}" ] || return 1  # a part is not there
  for one in "${found[@]}"; do
    owner=${one% *} mode=${one#* }
    [ "$owner" = "$EUID" ] || [ "$owner" = "${found[0]% *}" ] || return 1
    (((mode & 8#170000) == 8#120000 || !(mode & 8#22) || mode & 8#1000)) || return 1
  done
  [ "$owner" = "$EUID" ] && (((mode & 8#170022) == 8#40000))
}

hpclaunch_private_folders() {
  local name folder host
  read -r host < /proc/sys/kernel/hostname
  for name; do
    case ${!name-} in /tmp/* | /var/tmp/* | /dev/shm/*) ;; *) continue ;; esac  # the job's setup chose another place
    for folder in "${!name}" "${!name}.${HPCLAUNCH_KEY:-$$}" ''; do
      mkdir -m 700 -- "$folder" 2> /dev/null || :
      ! hpclaunch_is_own "$folder" || break
    done
    if [ -z "$folder" ]; then
      echo "hpclaunch: ${!name} is not this user's own on $host, and no other could be made: $name is not set" >&2
      unset "$name"
    elif [ "$folder" != "${!name}" ]; then
      echo "hpclaunch: ${!name} is not this user's own on $host: $name=$folder" >&2
      export "$name=$folder"
    fi
  done
}
