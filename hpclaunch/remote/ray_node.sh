# shellcheck shell=bash
# One node of a job's Ray cluster:  bash ray_node.sh NODES CPUS GPUS COMMAND...
#
# HPCLAUNCH_NODE is the number of this node. Node 0 has the head and, when all nodes have joined, runs the command; it ends
# with that. The others end with node 0, or with an exit status of 1 when their Ray ends. Ray's own processes are ended by
# SIGTERM to ray start --block: ray stop would end every Ray of the machine. Options: ray 2.60, python/ray/scripts/scripts.py.
nodes=$1 cpus=$2 gpus=$3
shift 3
export RAY_ADDRESS=$MASTER_ADDR:$MASTER_PORT
# Where the nodes tell each other their names, and the head its end; the path of Ray's sockets must be short.
together=$HPCLAUNCH_JOB_FOLDER/ray
scratch=$(mktemp -d /tmp/ray.XXXXXX) || exit 1
# A pipe in which nothing arrives: waiting needs no process that a signal could leave behind.
exec {never}<> <(:)
pause() { read -rt 1 -u "$never"; }

end_ray() {
  [ "$HPCLAUNCH_NODE" != 0 ] || : > "$together/end"
  kill -TERM "$ray" 2> /dev/null
  rm -rf -- "$scratch"  # before Ray has ended, which takes it up to 30 s: the launcher may not wait so long
  wait "$ray" 2> /dev/null
  rm -rf -- "$scratch"
}

start_ray() {
  local -a where=(--address="$RAY_ADDRESS")
  [ "$HPCLAUNCH_NODE" != 0 ] || where=(--head --port="$MASTER_PORT" --include-dashboard=false)
  # Worker ports of 0 are free ones: the usual range, 10002 to 19999, has the job's own port in it.
  ray start "${where[@]}" --num-cpus="$cpus" --num-gpus="$gpus" --resources="{\"hpclaunch_node_$HPCLAUNCH_NODE\": 1}" \
    --min-worker-port=0 --max-worker-port=0 --temp-dir="$scratch" --block > "$scratch/start.log" 2>&1 &
  ray=$!
}

# Ray gives a node 30 s to register (2.60, python/ray/_private/node.py), too few on a busy machine: start it again.
ray_lives() {
  kill -0 "$ray" 2> /dev/null && return
  ((SECONDS < ${HPCLAUNCH_RAY_WAIT_S:-300})) && grep -q 'timed out during startup' "$scratch/start.log" && start_ray
}

# Print the numbers of the nodes that are there, once a second until all are or the time is over.
wait_for_all() {
  local python
  pause
  IFS= read -r -d '' python < "/proc/$ray/cmdline"
  "$python" - "$nodes" "${HPCLAUNCH_RAY_WAIT_S:-300}" << 'PYTHON'
import sys, time
import ray
nodes, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while True:
    try:
        ray.init(address="auto", logging_level="ERROR", log_to_driver=False)
        break
    except ConnectionError:
        if time.monotonic() > end:
            sys.exit("hpclaunch: Ray's head does not answer")
        time.sleep(1)
while True:
    names = {name for each in ray.nodes() if each["Alive"] for name in each["Resources"]}
    missing = [number for number in range(nodes) if "hpclaunch_node_%d" % number not in names]
    if not missing or time.monotonic() > end:
        break
    time.sleep(1)
print(*missing)
PYTHON
}

run_command() {
  local missing number name
  missing=$(wait_for_all) || { cat "$scratch/start.log" >&2; return 1; }
  for number in $missing; do
    name="a node that has not started"
    read -r name 2> /dev/null < "$together/$number"
    echo "hpclaunch: node $number of the job, $name, has not joined the Ray cluster" >&2
  done
  [ -z "$missing" ] || return 1
  "$@" &
  command=$!
  ( while kill -0 "$ray" 2> /dev/null; do pause; done; kill -TERM "$command" ) 2> /dev/null &
  wait "$command"
}

mkdir -p "$together"
read -r host < /proc/sys/kernel/hostname
echo "$host" > "$together/$HPCLAUNCH_NODE"
start_ray
trap end_ray EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
if [ "$HPCLAUNCH_NODE" = 0 ]; then
  run_command "$@"
  exit
fi
until [ -e "$together/end" ]; do
  if ! ray_lives; then
    cat "$scratch/start.log" >&2
    echo "hpclaunch: Ray has ended on $host, node $HPCLAUNCH_NODE of the job" >&2
    exit 1
  fi
  pause
done
exit 0
