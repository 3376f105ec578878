#!/bin/sh
# Run a command where the user's home folder is $HOME: OpenSSH looks for it in /etc/passwd, whatever HOME is.
#   ETC_SSH=   a folder that takes the place of /etc/ssh
set -eu
P=$(mktemp)
awk -F: -v OFS=: -v id="$(id -u)" '$3 == id { $6 = ENVIRON["HOME"] } 1' /etc/passwd > "$P"
chmod 644 "$P"
[ "$(id -u)" = 0 ] && OWN='' || OWN='--map-current-user --keep-caps'
# shellcheck disable=SC2086,SC2016  # no word or two; the inner shell expands the rest
exec unshare $OWN --mount --propagation private sh -c '
mount --bind "$0" /etc/passwd; rm -f "$0"
[ -z "${ETC_SSH:-}" ] || mount --bind "$ETC_SSH" /etc/ssh
exec "$@"' "$P" "$@"
