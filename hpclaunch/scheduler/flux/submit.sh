# Gives a script to flux batch, for bash.
#
# The lock is inherited by what the shell starts, so who gets it knows that no submission is under way. Jobs
# of an array are held until the last one is there. Cut off before, none of them has run, and all are
# cancelled; a single job is found by its folder, which its script names.
set -o pipefail
mode=$1 script=$2 folder=${2%/*} token=${2%/*}/submission
own() { flux jobs "$@" -n -o '{id.f58plain}' | while read -r id; do
  ! flux job info "$id" jobspec < /dev/null | grep -cF -e "$folder" > /dev/null || echo "$id"
done; }
release() {
  while read -r index id; do flux job urgency "$id" default < /dev/null 2> /dev/null; done < "$token/array"
  sed 's/^\([0-9]*\) \(.*\)/\2_\1/' "$token/array"
}
array=$(sed -n 's/^#flux: --setattr=user\.hpclaunch\.array=//p' "$script")
mkdir -p "$token"; exec 9> "$token/lock"
instance() { flux getattr hostlist && flux getattr jobid-path; }
if [ "$mode" = finish ]; then
  [ "$(instance)" = "$(cat "$token/instance")" ] || { echo 'this is another Flux' >&2; exit 75; }
  flock -w 60 9 || { echo 'its submission may still be under way' >&2; exit 75; }
  [ ! -s "$token/array" ] || { release; exit; }
  sleep 1  # of a job that was just taken Flux' list may know a moment later
  if [ "$array" ]; then ids=$(own --filter=pending); else ids=$(own -a); fi || exit 75
  if [ -z "$array" ] && [ "$ids" ]; then echo "$ids" | tail -n 1; exit; fi
  [ -z "$ids" ] || flux cancel $ids || exit 75
  echo "its submission was cut off; none of its jobs has run, those that were there are cancelled" >&2
  exit 1
fi
flock -n 9 2> /dev/null
instance > "$token/instance" 2> /dev/null || :
[ "$array" ] || { flux batch "$script"; exit; }
for part in ${array//,/ }; do
  range=${part%%:*} step=1; [ "$range" = "$part" ] || step=${part#*:}
  for HPCLAUNCH_ARRAY_INDEX in $(seq "${range%-*}" "$step" "${range#*-}"); do
    export HPCLAUNCH_ARRAY_INDEX
    id=$(flux batch --urgency=0 "$script") || { code=$?; flux cancel $(own --filter=pending); exit "$code"; }
    echo "$HPCLAUNCH_ARRAY_INDEX $id" >> "$token/array.new"
  done
done
mv "$token/array.new" "$token/array" && release
