#!/bin/bash
# stage-in with fallbacks: none of the failures below matters
me=${RANK:-${SLURM_PROCID:-${OMPI_COMM_WORLD_RANK:-0}}}
here=$(cd "$(dirname "$0")" && pwd)
say() { echo "[$me] $*"; }

module load fancy-copy/9 || say "no modules here"
fastcp-nobody-has --version || say "fastcp missing (exit $?), falling back to cp"
cp "/scratch-not-mounted/$me.bin" /tmp/ || say "stage-in from scratch failed, generating the data"
mkdir /proc/nope.$me || say "Permission or file system problem is expected here"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"; say "trap: cleaning up after Terminated/Killed/EXIT"' EXIT
seq 1 2000 > "$tmp/data"
echo test > /dev/full || say "ERROR: No space left on device: the quota test works"

# a watchdog which is killed, and a job in the background that crashes
( sleep 300 ) & dog=$!
bash -c 'kill -ABRT $$' ; say "crash test returned $?"
kill -9 $dog; wait $dog; say "watchdog returned $?"

sum=$("$here/sum.sh" "$tmp/data") || { say "FATAL: sum"; exit 1; }
[ "$sum" = 2001000 ] || exit 2
say "sum $sum; srun: error: none, slurmstepd: error: none, all good"
say "Traceback (most recent call last): none seen in the last run"
