# Starts a script by salloc, for bash: $1 the script, then salloc's options.
#
# salloc runs detached, so that neither a lost terminal nor a lost connection ends it; its id is known as
# soon as it waits for nodes. It ends the script when the allocation is taken away (scancel, time limit).
script=$1; shift
log=${script%/*}/out.log
salloc --kill-command=TERM "$@" bash "$script" < /dev/null > "$log" 2>&1 &
salloc=$!
while :; do
  ended=; kill -0 $salloc 2> /dev/null || ended=1
  line=$(grep -m 1 -E '^salloc: (Pending|Granted) job allocation [0-9]+' "$log" 2> /dev/null) && break
  [ -z "$ended" ] || { cat "$log" >&2; exit 1; }
  sleep 0.05
done
id=${line##* }
# salloc has no --kill-on-invalid-dep: while it waits for another job, look whether that has failed.
case " $*" in *' --dependency='*)
  while sleep 5 && [ "$(squeue -h -j "$id" -t PENDING -o %i)" ]; do
    [ "$(squeue -h -j "$id" -o %r)" != DependencyNeverSatisfied ] || scancel "$id"
  done < /dev/null > /dev/null 2>&1 & ;;
esac
printf '%s\n' "$id"
