#!/usr/bin/env bash
# Tries on real NVIDIA GPUs what the tests can only try with fakes, and keeps all outputs: eight parts, each with a
# verdict; a part that fails does not stop the next ones.
#
#     benchmarks/on_gpu.sh FOLDER
#
# FOLDER is made new. PYTHON (default python3) is a Python that has torch with CUDA; HPCLAUNCH (default hpclaunch) the
# words that start hpclaunch. Takes about five minutes and all GPUs of the node. The verdicts are in FOLDER/summary.tsv:
# passed; failed; not-run, with what is missing; rehearsed: it ran, but torch sees no GPU here, so it shows nothing
# about one. The exit status is 1 if a part failed. benchmarks/keep_gpu_outputs.py makes a fixture of FOLDER.
set -uo pipefail

[ $# = 1 ] || { echo "usage: $0 FOLDER" >&2 && exit 2; }
mkdir -- "$1" || { echo "$0: name a folder that does not exist yet" >&2 && exit 2; }
OUT=$(cd -- "$1" && pwd)
PARTS=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)/gpu_parts
PYTHON=${PYTHON:-python3}
read -ra HPCLAUNCH <<<"${HPCLAUNCH:-hpclaunch}"
export XDG_STATE_HOME=$OUT/state  # its jobs stay out of your own list
unset CUDA_VISIBLE_DEVICES        # all GPUs that this shell may use, as nvidia-smi lists them

hpclaunch() { timeout -k 30 900 "${HPCLAUNCH[@]}" "$@"; }
submit() { hpclaunch submit --site local --json "$@"; }
# A field of the document that submit has printed, such as the job's id.
of() { "$PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[2]))[sys.argv[1]])' "$1" job.json; }

# part NAME: run the function of that name in its folder; its words go to words.txt, its exit status to status.
part() {
  local name=$1
  mkdir "$OUT/$name"
  printf '%s ...\n' "$name" >&2
  (cd "$OUT/$name" && set -e && "$name") >"$OUT/$name/words.txt" 2>&1
  printf '%s\n' "$?" >"$OUT/$name/status"
  "$PYTHON" "$PARTS/judge.py" "$name" "$OUT" | tee -a "$OUT/summary.tsv"
}

# What there is. With no answer the files are empty, and the verdicts say so.
nvidia-smi --query-gpu=index,name,pci.bus_id,uuid,driver_version,memory.total --format=csv,noheader >"$OUT/gpus.csv" || :
nvidia-smi -q >"$OUT/nvidia-smi-q.txt" || :
"$PYTHON" "$PARTS/torch_here.py" >"$OUT/torch.json" || echo '{"version": null, "gpus": 0}' >"$OUT/torch.json"
"${HPCLAUNCH[@]}" --version >"$OUT/version.txt" || exit 1
date -u +%Y-%m-%d >"$OUT/date.txt"
# Names that keep_gpu_outputs.py replaces; it does not keep this file.
{
  uname -n
  hostname -f
  id -un
  printf '%s\n' "$OUT" "$PARTS" "$HOME"
} >"$OUT/private.txt" 2>/dev/null
ranks=$(grep -c . "$OUT/gpus.csv") || ranks=1

# 1. The node: read live, saved, and read again from what was saved.
topology() {
  hpclaunch topology --json >live.json
  hpclaunch topology --save node
  hpclaunch topology --from node --json >saved.json
}

# 2. Each rank prints the GPUs that it sees and the one that it takes, to be compared with the plan.
visibility() {
  submit --tasks "$ranks" --wait -- "$PYTHON" "$PARTS/sees.py" >job.json
  hpclaunch logs "$(of id)" >log.txt
  hpclaunch verify "$(of id)" --json >verify.json
}

# 3. DistributedDataParallel over all GPUs with NCCL, and sums that must be exact.
ddp() {
  NCCL_DEBUG=INFO submit --tasks "$ranks" --wait -- "$PYTHON" "$PARTS/ddp.py" >job.json || :
  hpclaunch logs "$(of id)" >log.txt
}

# 4. Whether torch is built for these GPUs.
check() { hpclaunch check --framework torch --python "$PYTHON" --json >check.json; }

# 5. Traces of torch.profiler, one per rank.
timeline() {
  mkdir traces
  TRACES=$PWD/traces submit --tasks "$ranks" --wait -- "$PYTHON" "$PARTS/profiled.py" >job.json
  hpclaunch timeline traces --json >timeline.json
}

# 6. The last rank starts a kernel that does not end; the other ranks wait for it. The job is cancelled afterwards.
stacks() {
  local job look
  submit --no-wait --tasks "$ranks" -- "$PYTHON" "$PARTS/hangs.py" >job.json
  job=$(of id)
  for ((look = 0; look < 120; look++)); do
    hpclaunch logs "$job" >log.txt
    if [ "$(grep -c '^at the end$' log.txt)" = "$ranks" ]; then break; fi
    hpclaunch status "$job" --json >status.json || break
    if grep -qE '"state": "(done|failed|cancelled)"' status.json; then break; fi
    sleep 1
  done
  sleep 3  # from the line to the call
  hpclaunch stacks "$job" --json >stacks.json || :
  hpclaunch cancel "$job"
  hpclaunch wait "$job" || :  # a cancelled job
  nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader >after.txt || :
}

# 7. Half a minute of work, looked at each 2 seconds: use, memory and energy of the GPUs.
report() {
  submit --tasks "$ranks" --sample 2 --wait -- "$PYTHON" "$PARTS/busy.py" >job.json
  hpclaunch report "$(of id)" --json >report.json
  cp -r -- "$(of folder)/samples" .
}

# 8. The memory that torch has allocated at most in training steps, against the prediction for the same network.
memory() {
  cp "$PARTS/steps.py" .
  hpclaunch predict --from-torch steps:network --input 3,64,64 --python "$PYTHON" >network.yaml
  hpclaunch predict --site local --model network.yaml --batch-per-worker 256 --gpus 1 --gpus-per-node 1 \
    --strategy data --optimizer momentum --tflops 10 --memory-gb-s 1000 --json >predict.json
  timeout -k 30 900 "$PYTHON" "$PARTS/steps.py" >steps.json
}

for name in topology visibility ddp check timeline stacks report memory; do part "$name"; done
! cut -f2 "$OUT/summary.tsv" | grep -qx failed
