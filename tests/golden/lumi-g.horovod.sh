#!/bin/bash
# the name in squeue
#SBATCH --job-name=mnist
# the project that pays
#SBATCH --account=project_465000001
# the first partition that fits: up to 1024 nodes, 2-00:00:00
#SBATCH --partition=standard-g
# nodes
#SBATCH --nodes=2
# ranks on each node
#SBATCH --ntasks-per-node=8
# GPUs of each node, visible to its ranks together
#SBATCH --gpus-per-node=8
# memory of each node
#SBATCH --mem=480G
# whole nodes, also where the partition shares them
#SBATCH --exclusive
# walltime limit
#SBATCH --time=00:30:00
# stdout and stderr of the job
#SBATCH --output=hpclaunch-%j.out
# each run writes on in the same log: Slurm, too, may requeue the job
#SBATCH --open-mode=append

# Written by hpclaunch VERSION for lumi-g: LUMI-G at CSC, Finland (HPE Cray EX, 8 MI250X GCDs per node), facts read 2026-11-20 to 2026-11-22.
# 2 nodes x 8 ranks = 16 ranks.
# Framework: horovod; named in the request.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 49-55  GPU 0  NUMA node 3
#   rank 1: CPUs 57-63  GPU 1  NUMA node 3
#   rank 2: CPUs 17-23  GPU 2  NUMA node 1
#   rank 3: CPUs 25-31  GPU 3  NUMA node 1
#   rank 4: CPUs 1-7  GPU 4  NUMA node 0
#   rank 5: CPUs 9-15  GPU 5  NUMA node 0
#   rank 6: CPUs 33-39  GPU 6  NUMA node 2
#   rank 7: CPUs 41-47  GPU 7  NUMA node 2

set -eo pipefail

# The folder of this job's log, result and exit status.
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"
export HPCLAUNCH_RESULT_FILE=$HPCLAUNCH_JOB_FOLDER/result.json
mkdir -p "$HPCLAUNCH_JOB_FOLDER"

# How an earlier run of this job ended no longer counts.
rm -f "$HPCLAUNCH_JOB_FOLDER/exit_status" "$HPCLAUNCH_JOB_FOLDER/reason" "$HPCLAUNCH_JOB_FOLDER/log_start"
# Where the log of this run begins, if there is a log of runs before.
{ wc -c < "$HPCLAUNCH_JOB_FOLDER/out.log" > "$HPCLAUNCH_JOB_FOLDER/log_start"; } 2> /dev/null || :
# Room for the files that report how the job ended is reserved now: at the end the disk or quota may be full.
echo > "$HPCLAUNCH_JOB_FOLDER/exit_status.new" || :
# Write text $2 to file $1 of the folder, into the reserved room; the file appears whole or not at all.
# shellcheck disable=SC2329  # the trap calls it
hpclaunch_write() {
  printf '%s\n' "$2" 1<> "$HPCLAUNCH_JOB_FOLDER/$1.new" && mv "$HPCLAUNCH_JOB_FOLDER/$1.new" "$HPCLAUNCH_JOB_FOLDER/$1"
}

# The exit status is written however the job ends.
# shellcheck disable=SC2329  # the trap calls it
hpclaunch_end() {
  status=$?
  trap - EXIT
  # What the samples say, in one line; a job that is ended by a signal has no time for it.
  [ "$status" -ge 128 ] || timeout 10 bash "$HPCLAUNCH_JOB_FOLDER/sampler.sh" summary "$HPCLAUNCH_JOB_FOLDER/samples" "$HPCLAUNCH_JOB_ID" 2> /dev/null || :
  hpclaunch_write exit_status "$status" || :
  exit "$status"
}
trap hpclaunch_end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# number of ranks of the job
export HPCLAUNCH_TASKS=16

# the software stack for the GPU nodes (https://docs.lumi-supercomputer.eu/software/installing/easybuild/, read 2026-11-20)
module load LUMI/24.03 partition/G

# a Python with numpy and mpi4py for Cray MPICH (https://github.com/HichamAgueny/DL-Horovod, read 2026-11-20, stated)
module load cray-python

# settings of an outer allocation, which srun would read as options
unset SLURM_ACCTG_FREQ SLURM_CPU_BIND SLURM_CPU_BIND_LIST SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_VERBOSE \
  SLURM_CPU_FREQ_REQ SLURM_CPUS_PER_GPU SLURM_CPUS_PER_TASK SLURM_DISTRIBUTION SLURM_DIST_PLANESIZE \
  SLURM_EXPORT_ENV SLURM_GPU_BIND SLURM_GPU_FREQ SLURM_GPUS SLURM_GPUS_PER_SOCKET SLURM_GPUS_PER_TASK \
  SLURM_HINT SLURM_MEM_BIND SLURM_MEM_BIND_LIST SLURM_MEM_BIND_PREFER SLURM_MEM_BIND_SORT \
  SLURM_MEM_BIND_TYPE SLURM_MEM_BIND_VERBOSE SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_NETWORK \
  SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_SOCKET SLURM_OVERCOMMIT SLURM_PROFILE \
  SLURM_THREADS_PER_CORE SLURM_TRES_PER_TASK

# RCCL finds its peers over Slingshot, not over the management network (https://github.com/Lumi-supercomputer/LUMI-AI-Guide, read 2026-11-20)
export NCCL_SOCKET_IFNAME="hsn0,hsn1,hsn2,hsn3"

# the NICs read GPU memory directly (LUMI's PyTorch containers set 3; HPE's guide says PHB) (https://github.com/Lumi-supercomputer/LUMI-AI-Guide, read 2026-11-20)
export NCCL_NET_GDR_LEVEL="3"

# libfabric's default memory monitor, memhooks, can deadlock with RCCL (https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20)
export FI_MR_CACHE_MONITOR="userfaultfd"

# prevents libfabric from registering host memory with the GPU, which can deadlock (https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20)
export FI_CXI_DISABLE_HOST_REGISTER="1"

# completion queues large enough for collectives over many ranks (https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20)
export FI_CXI_DEFAULT_CQ_SIZE="131072"

# lets RCCL use the direct path between GPUs and NICs (https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20)
export HSA_FORCE_FINE_GRAIN_PCIE="1"

# MIOpen's database in node-local memory - many ranks that lock one file on Lustre hang (https://docs.lumi-supercomputer.eu/runjobs/scheduled-jobs/lumig-job/, read 2026-11-20)
export MIOPEN_USER_DB_PATH="/tmp/$USER-miopen-$SLURM_JOB_ID"

# MIOpen's kernel cache next to its database (https://docs.lumi-supercomputer.eu/runjobs/scheduled-jobs/lumig-job/, read 2026-11-20)
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/$USER-miopen-$SLURM_JOB_ID"

# torch's downloads go to scratch, not into the 20 GB home folder (https://github.com/Lumi-supercomputer/LUMI-AI-Guide, read 2026-11-20)
export TORCH_HOME="/scratch/$SLURM_JOB_ACCOUNT/$USER/torch_home"

# for names of folders in /tmp that no other user can foresee
read -r HPCLAUNCH_KEY < /proc/sys/kernel/random/uuid
export HPCLAUNCH_KEY

# the launcher starts the ranks, so they find each other by MPI (Gloo needs horovodrun)
export HOROVOD_CONTROLLER=mpi

# and tensors in host memory go by MPI, also where Gloo is the build's default
export HOROVOD_CPU_OPERATIONS=mpi

# Horovod's rank 0 writes the timeline of all ranks here (Horovod docs, timeline)
export HOROVOD_TIMELINE="$HPCLAUNCH_JOB_FOLDER"/timeline.json

# with Horovod's cycles marked in it
export HOROVOD_TIMELINE_MARK_CYCLES=1

# threads for each rank: the cores it is bound to
export OMP_NUM_THREADS=7

# Each rank reports its binding in this folder.
rm -rf "$HPCLAUNCH_JOB_FOLDER/binding" || :
mkdir "$HPCLAUNCH_JOB_FOLDER/binding" || :

# The samples of each node, a file per node; those of runs before a restart stay.
mkdir -p "$HPCLAUNCH_JOB_FOLDER/samples" || :

# What each rank last wrote to its stderr, in this run.
rm -rf "$HPCLAUNCH_JOB_FOLDER/stderr" || :
mkdir "$HPCLAUNCH_JOB_FOLDER/stderr" || :

# Each rank is a shell that runs these lines and then becomes the program.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
# these folders must be the user's own on each node: every user may write where they stand
[ ! -r "$HPCLAUNCH_JOB_FOLDER/private_folders.sh" ] || . "$HPCLAUNCH_JOB_FOLDER/private_folders.sh" MIOPEN_USER_DB_PATH MIOPEN_CUSTOM_CACHE_DIR
# rank and local rank, for this shell only
RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID"
# an MPI that is started by a plugin which it does not speak gives no error
if [ "$SLURM_PROCID" = 0 ] && [ -z "${PMIX_RANK-}" ]; then
  case ${PMI_RANK-}${PALS_RANKID-},$(ldd "$(command -v -- "$1")" 2> /dev/null) in
    ,*libmpi* | *libopen-pal.so.80*)
      echo "each rank would run alone, as 'rank 0 of 1': the MPI of $1 does not speak srun's plugin;" \
        "--mpi pmix is for Open MPI, pmi2 for MPICH (srun --mpi=list), none starts it so on purpose" |
        tee "$HPCLAUNCH_JOB_FOLDER/reason" >&2
      exit 1 ;;
  esac
fi
# CPUs planned for each local rank
cpus=(49-55 57-63 17-23 25-31 1-7 9-15 33-39 41-47)
# NUMA nodes of each local rank's cores
numa=(3 3 1 1 0 0 2 2)
# PCI addresses of those GPUs
bus=(0000:c1:00.0 0000:c6:00.0 0000:c9:00.0 0000:ce:00.0 0000:d1:00.0 0000:d6:00.0 0000:d9:00.0 0000:de:00.0)
# all GPUs in the order of the ranks: number LOCAL_RANK of them is the rank's own
export ROCR_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
# the numbers of each local rank's GPUs in that list
own=(0 1 2 3 4 5 6 7)
# Its stderr goes to the launcher and, the end of it, to a file: launchers lose lines when they end a job.
[ ! -r "$HPCLAUNCH_JOB_FOLDER/rank_stderr.sh" ] || . "$HPCLAUNCH_JOB_FOLDER/rank_stderr.sh" "$HPCLAUNCH_JOB_FOLDER" "$RANK"
# The binding that this rank has, read from /proc and /sys and compared with the plan: one line in the job's folder.
# In a function, so that no variable of the program's environment is changed.
hpclaunch_report() {
  local root key value got_cpus='' got_mems='' mems_shown policy host verdict=ok node range rest here report
  local foreign='' doubt=''
  root=${HPCLAUNCH_SYSROOT:-}
  while read -r key value; do
    case $key in
      Cpus_allowed_list:) got_cpus=$value ;;
      Mems_allowed_list:) got_mems=$value ;;
    esac
  done < "$root/proc/self/status"
  # A memory policy (numactl, srun --mem-bind) stands in numa_maps, and the program inherits it. It is written as Linux
  # 6.12 does (mm/mempolicy.c); "prefer (many)" is there from 5.15 on, "weighted interleave" from 6.9 on.
  mems_shown=$got_mems
  if read -r _ policy 2> /dev/null < "$root/proc/self/numa_maps"; then
    policy=${policy/#'prefer (many)'/prefer-many} policy=${policy/#weighted /weighted-} policy=${policy%% *}
    case $policy in
      bind*:* | prefer-many*:*) got_mems=${policy##*:} ;;
      prefer*:* | interleave*:* | weighted-interleave*:*) foreign=${policy##*:} ;;  # pages go to all of these nodes
      default | local) ;;
      *) doubt=1 ;;
    esac
    case $policy in bind*) mems_shown=$got_mems ;; *:*) mems_shown=$policy ;; esac
  fi
  read -r host < "$root/proc/sys/kernel/hostname"
  local found uuids n simd_count location_id domain id mine got_bus got_gpu_numa beyond gpu on
  # PCI addresses of this node's GPUs in the order of their indices: AMD's from kfd, NVIDIA's from its driver.
  found=() uuids=()
  for ((n = 0; ; n++)); do
    node=$root/sys/class/kfd/kfd/topology/nodes/$n/properties
    [ -r "$node" ] || break
    simd_count=0 location_id=0 domain=0
    while read -r key value; do
      case $key in simd_count | location_id | domain) printf -v "$key" %s "$value" ;; esac
    done < "$node"
    [ "$simd_count" != 0 ] || continue  # a CPU
    printf -v id %04x:%02x:%02x.%x "$domain" $((location_id >> 8)) $((location_id >> 3 & 31)) $((location_id & 7))
    found+=("$id") uuids+=('')
  done
  for node in "$root"/proc/driver/nvidia/gpus/*; do
    [ -e "$node" ] || continue
    found+=("${node##*/}") value=''
    # "GPU UUID:   GPU-8932f937-..." (the driver's README, "The /proc Interface"); ? where it is not shown.
    while IFS=: read -r key value && [ "$key" != 'GPU UUID' ]; do value=''; done 2> /dev/null < "$node/information"
    uuids+=("${value//[[:space:]]/}")
  done
  IFS=, read -ra mine <<< "${ROCR_VISIBLE_DEVICES:-}"
  local sees=("${mine[@]}")
  mine=()
  for n in ${own[LOCAL_RANK]//,/ }; do mine+=("${sees[n]:-none}"); done  # those planned for it
  got_bus='' got_gpu_numa='' beyond=''
  for gpu in "${mine[@]}"; do
    id=unknown on=unknown
    case $gpu in
      -1 | NoDevFiles | none) beyond=$gpu ;;  # neither this one nor those after it
      *[!0-9]*)
        # By its UUID, whole or the start of one (CUDA programming guide); a MIG instance has none in /proc.
        for n in "${!uuids[@]}"; do
          [[ $gpu != GPU-?* || ${uuids[n]} != "$gpu"* || $id != unknown ]] || id=${found[n]}
        done
        [ "$id" != unknown ] || doubt=1
        ;;
      ?*)
        id=${found[gpu]:-unknown}
        if [ "${found[*]}" ] && [ "$gpu" -ge ${#found[@]} ]; then beyond=$gpu; fi
        ;;
    esac
    if [ -r "$root/sys/bus/pci/devices/$id/numa_node" ]; then read -r on < "$root/sys/bus/pci/devices/$id/numa_node"; fi
    got_bus+=,$id got_gpu_numa+=,$on
  done
  [ "$got_cpus" = "${cpus[LOCAL_RANK]}" ] || verdict='cpus-differ'
  # Memory must be allowed on each NUMA node of the rank's cores; more nodes may be allowed.
  for node in ${numa[LOCAL_RANK]//,/ }; do
    here='' rest=${got_mems:-$node},
    while [ "$rest" ]; do
      range=${rest%%,*} rest=${rest#*,}
      if [ "${range%-*}" -le "$node" ] && [ "$node" -le "${range#*-}" ]; then here=1; fi
    done
    [ "$here" ] || verdict='memory-on-another-numa-node'
  done
  # A policy that prefers or interleaves may name the rank's own nodes only.
  rest=${foreign:+$foreign,}
  if [ -z "${numa[LOCAL_RANK]}" ]; then doubt+=$rest rest=''; fi
  while [ "$rest" ]; do
    range=${rest%%,*} rest=${rest#*,}
    for ((node = ${range%-*}; node <= ${range#*-}; node++)); do
      case ,${numa[LOCAL_RANK]}, in *,"$node",*) ;; *) verdict='memory-on-another-numa-node' ;; esac
    done
  done
  case $got_bus in
    *unknown*) ;;  # no driver shows the addresses here
    ",${bus[LOCAL_RANK]}") ;;
    *) [ -z "${bus[LOCAL_RANK]}" ] || verdict='other-gpus' ;;
  esac
  for on in ${got_gpu_numa//,/ }; do
    case ,${numa[LOCAL_RANK]},unknown,-1, in *,"$on",*) ;; *) verdict='gpu-on-another-numa-node' ;; esac
  done
  [ -z "$beyond" ] || verdict='no-such-gpu'
  [ "$verdict" != ok ] || [ -z "$doubt" ] || verdict='not-judged'
  printf -v report 'hpclaunch-binding rank=%s host=%s local_rank=%s cpus=%s planned=%s mems=%s gpus=%s bus=%s gpu_numa=%s verdict=%s' \
    "$RANK" "$host" "$LOCAL_RANK" "$got_cpus" "${cpus[LOCAL_RANK]}" "${mems_shown:-unknown}" \
    "$(IFS=,; echo "${mine[*]:-none}")" "${got_bus:1}" "${got_gpu_numa:1}" "$verdict"
  # One file per node: appending to one file from several nodes is not safe on NFS. Without room there: the log.
  { printf '%s\n' "$report" >> "$HPCLAUNCH_JOB_FOLDER/binding/$host"; } 2> /dev/null || printf '%s\n' "$report"
  ( hpclaunch_watch $$ "$got_cpus" "$HPCLAUNCH_JOB_FOLDER/binding/$host" & ) < /dev/null > /dev/null 2>&1
}
# Look again while the program runs: libraries bind threads, and wrappers rebind programs. This shell sleeps between its
# looks, is not a child of the program, holds none of its files, and ends with it. What is new is a line in the same file.
hpclaunch_watch() {
  local process=$1 at_start=$2 file=$3 fd never task at=0 kids kid list name found='' written=- next=2 step=2 n
  local -a tasks lines
  local -A seen
  cd "${HPCLAUNCH_SYSROOT:-}/proc/$process" || return  # stays this process, also when its number is used again
  trap '' INT USR1 USR2
  for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    [ "$fd" -le 2 ] || exec {fd}>&-
  done
  exec {never}<> <(:)  # a pipe in which nothing arrives: waiting for it needs no process
  SECONDS=0
  while [ -e task ]; do
    read -rt $((step > 60 ? 5 : 1)) -u "$never" || :
    [ "$SECONDS" -ge "$next" ] || continue
    tasks=(task/*)
    for ((n = 0; n < ${#tasks[@]}; n++)); do
      task=${tasks[n]} lines=() kids=''
      mapfile -t lines < "$task/status"
      read -r kids < "$task/children" || :
      for kid in $kids; do tasks+=("/proc/$kid/task/"*); done
      # The line is at the same place in most of them; none: it has ended.
      if [[ ${lines[at]:-} != Cpus_allowed_list:* ]]; then
        for ((at = ${#lines[@]} - 1; at > 0; at--)); do [[ ${lines[at]} != Cpus_allowed_list:* ]] || break; done
      fi
      [ "$at" -gt 0 ] || continue
      list=${lines[at]#Cpus_allowed_list:?}
      [ "$list" != "$at_start" ] && [ -z "${seen[$list]:-}" ] || continue
      name=${lines[0]#*:?}
      seen[$list]=1 found+=${found:+;}$list@${name//[^a-zA-Z0-9_.:-]/_}
    done
    if [ "$found" != "$written" ]; then
      printf 'hpclaunch-later rank=%s found=%s\n' "$RANK" "$found" >> "$file"
      written=$found
    fi
    step=$((step < 150 ? 2 * step : 300)) next=$((SECONDS + step))
  done
}
hpclaunch_report
# Each rank notes its process, and local rank 0 of each node starts the sampler: one process that reads counters of CPU,
# memory, GPUs and energy each 30 s for hpclaunch report, and ends with that rank. --no-sample leaves it out.
hpclaunch_sample() {
  local host
  read -r host < /proc/sys/kernel/hostname
  host=$HPCLAUNCH_JOB_FOLDER/samples/$host
  { printf 'rank %s %s %(%s)T\n' "$RANK" $$ -1 >> "$host"; } 2> /dev/null || return 0
  [ "$LOCAL_RANK" != 0 ] || ( bash "$HPCLAUNCH_JOB_FOLDER/sampler.sh" $$ 30 "$host" & ) < /dev/null > /dev/null 2>&1
}
hpclaunch_sample
# Become the program, which has no other child left of this shell.
[ -z "${hpclaunch_copier:-}" ] || wait "$hpclaunch_copier"
exec -- "$@"
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000 \
  bash -c "$rank_start" rank \
  python train.py --deepspeed_config 'ds config.json'
