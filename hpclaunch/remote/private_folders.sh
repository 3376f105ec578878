# Makes the folders that variables name, on this node. A rank's shell sources this file (bash) with the variables' names.
#
# They stand in folders where every user may write (/tmp, /dev/shm), under names that can be foreseen, and hold what
# programs run: compiled kernels. So a folder that is there counts only if it is this user's own, no link, and writable
# by nobody else. Where it is not, the variable gets another name, which has the key of this job in it: no other user
# can know that before the folder is made. All ranks of a node find the same folder.
hpclaunch_private_folders() {
  local name folder
  for name; do
    for folder in "${!name}" "${!name}.${HPCLAUNCH_KEY:-$$}" ''; do
      mkdir -m 700 -- "$folder" 2> /dev/null && break
      [ -d "$folder" ] && [ ! -L "$folder" ] && [ -O "$folder" ] || continue
      case $(stat -c %a -- "$folder") in *[2367] | *[2367]?) ;; *) break ;; esac
    done
    if [ -z "$folder" ]; then
      echo "hpclaunch: ${!name} is not this user's own on $HOSTNAME, and no other could be made: $name is not set" >&2
      unset "$name"
    elif [ "$folder" != "${!name}" ]; then
      echo "hpclaunch: ${!name} is not this user's own on $HOSTNAME: $name=$folder" >&2
      export "$name=$folder"
    fi
  done
}
hpclaunch_private_folders "$@"
