#!/bin/bash -l
# the name in qstat
#PBS -N mnist
# the project that pays
#PBS -A MyProject
# the first queue that fits: up to 2 nodes, 01:00:00
#PBS -q debug
# nodes, and what each of them must be
#PBS -l select=1:system=polaris
# walltime limit
#PBS -l walltime=00:30:00
# stderr goes where stdout goes
#PBS -j oe
# file systems the job needs (home, eagle); a job that names none is refused (https://docs.alcf.anl.gov/running-jobs/, read 2026-11-20)
#PBS -l filesystems=home:eagle
# each chunk on its own node (https://docs.alcf.anl.gov/polaris/running-jobs/, read 2026-11-20)
#PBS -l place=scatter

# Written by hpclaunch VERSION for polaris: Polaris at ALCF, Argonne (HPE Apollo, 4 A100 40 GB per node, Slingshot-11), facts read 2026-11-20 to 2026-11-22.
# 1 node x 4 ranks = 4 ranks.
# Framework: not known; --framework names it.
# CPUs and GPUs of each local rank:
#   rank 0: CPUs 24-31  GPU 0  NUMA node 3
#   rank 1: CPUs 16-23  GPU 1  NUMA node 2
#   rank 2: CPUs 8-15  GPU 2  NUMA node 1
#   rank 3: CPUs 0-7  GPU 3  NUMA node 0

set -eo pipefail

# The folder of this job's log, result and exit status.
export HPCLAUNCH_JOB_ID="${PBS_JOBID%%[!0-9]*}"
export HPCLAUNCH_JOB_FOLDER="$PBS_O_WORKDIR/hpclaunch-${PBS_JOBID%%[!0-9]*}"
export HPCLAUNCH_RESULT_FILE=$HPCLAUNCH_JOB_FOLDER/result.json
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
# The job's log, in which a run that comes back writes on.
exec >> "$HPCLAUNCH_JOB_FOLDER/out.log" 2>&1

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

# PBS starts a job in the home folder
cd "$PBS_O_WORKDIR"

# number of ranks of the job
export HPCLAUNCH_TASKS=4

# what the site's containers need
module use /soft/modulefiles

# what the site's containers need
module load spack-pe-base

# what the site's containers need
module load apptainer

# this accelerator target instead of the one from nvidia-smi
export EESSI_ACCELERATOR_TARGET_OVERRIDE=accel/nvidia/cc80

# the image of EESSI's container, pulled once and then used by all ranks and later jobs
export hpclaunch_eessi=${SINGULARITY_CACHEDIR:-$HOME/.cache}
case $hpclaunch_eessi/ in /tmp/* | /var/tmp/* | /dev/shm/*) hpclaunch_eessi=$HOME/.cache ;; esac
hpclaunch_eessi+=/hpclaunch-eessi/build-node_debian12.sif
if [ ! -x "$hpclaunch_eessi" ]; then
  (umask 077; mkdir -p "${hpclaunch_eessi%/*}")
  part=$(mktemp -d "${hpclaunch_eessi%/*}/part.XXXXXX")
  singularity pull "$part/image" docker://ghcr.io/eessi/build-node:debian12 || {
    rm -rf "$part"
    why="EESSI's image cannot be pulled here: on a login node run singularity pull $hpclaunch_eessi docker://ghcr.io/eessi/build-node:debian12"
    echo "hpclaunch: $why" >&2
    [ -z "${HPCLAUNCH_JOB_FOLDER:-}" ] || echo "$why" > "$HPCLAUNCH_JOB_FOLDER/reason"
    exit 1
  }
  chmod +x "$part/image"
  mv "$part/image" "$hpclaunch_eessi"
  rmdir "$part"
fi

# eessi_container.sh adds to the one, and Apptainer would read the other instead
export SINGULARITY_BIND="${SINGULARITY_BIND:-${APPTAINER_BIND:-}}"
unset APPTAINER_BIND

# your home folder in the container; without it eessi_container.sh makes an empty one
export SINGULARITY_HOME="${SINGULARITY_HOME:-$HOME}"

# adds to the binds that modules have set; those whose variable is not set here are left out
hpclaunch_bind() {
  for bind; do
    [ -z "${bind%%:*}" ] || SINGULARITY_BIND=${SINGULARITY_BIND:+$SINGULARITY_BIND,}$bind
  done
  export SINGULARITY_BIND
}

# binds folders that exist, under the real path and under the name of a link that leads there
hpclaunch_bind_folders() {
  local folder real place other seen=()
  for folder; do
    real=$(readlink -e -- "$folder") || continue
    [ "$real" != / ] || continue
    case $folder$real in *[,:]*)
      echo "hpclaunch: a comma or colon in its path keeps it out of the container: $folder" >&2
      continue ;;
    esac
    for place in "$real" "$folder"; do
      for other in "${seen[@]}"; do case $place/ in "$other"/*) continue 2 ;; esac; done
      seen+=("$place")
      if [ "$real" = "$place" ]; then hpclaunch_bind "$real"; else hpclaunch_bind "$real:$place"; fi
    done
  done
}

# in the container: MPI and fabric of the site
hpclaunch_bind "/opt" "/var/run/palsd/"

# in the container: the site's file systems, the job's folder and the working folder
hpclaunch_bind_folders "/eagle" "/local/scratch" "$HPCLAUNCH_JOB_FOLDER" "$PWD"

# the NICs read GPU memory directly where both are attached to one host bridge (https://docs.alcf.anl.gov/polaris/data-science/nccl/, read 2026-11-20)
export NCCL_NET_GDR_LEVEL="PHB"

# a ring may enter a node by one NIC and leave it by another (https://docs.alcf.anl.gov/polaris/data-science/nccl/, read 2026-11-20)
export NCCL_CROSS_NIC="1"

# collectives may use the network's own algorithms (https://docs.alcf.anl.gov/polaris/data-science/nccl/, read 2026-11-20)
export NCCL_COLLNET_ENABLE="1"

# prevents libfabric from registering host memory with CUDA, which can deadlock (https://docs.alcf.anl.gov/polaris/data-science/nccl/, read 2026-11-20)
export FI_CXI_DISABLE_HOST_REGISTER="1"

# libfabric's default memory monitor, memhooks, can deadlock with NCCL (https://docs.alcf.anl.gov/polaris/data-science/nccl/, read 2026-11-20)
export FI_MR_CACHE_MONITOR="userfaultfd"

# completion queues large enough for collectives over many ranks (https://docs.alcf.anl.gov/polaris/data-science/nccl/, read 2026-11-20)
export FI_CXI_DEFAULT_CQ_SIZE="131072"

# NCCL's plugin for Slingshot and the hwloc it needs (https://docs.alcf.anl.gov/polaris/data-science/nccl/, read 2026-11-20)
export LD_LIBRARY_PATH="/soft/libraries/aws-ofi-nccl/v1.9.1-aws/lib:/soft/libraries/hwloc/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

# a job of one node has no Slingshot service, so forcing the plugin makes NCCL fail (https://github.com/HewlettPackard/shs-ccl-docs, read 2026-11-20)
unset NCCL_NET

# compute nodes reach the internet through the proxy only (https://docs.alcf.anl.gov/polaris/running-jobs/, read 2026-11-20)
export http_proxy="http://proxy.alcf.anl.gov:3128"

# compute nodes reach the internet through the proxy only (https://docs.alcf.anl.gov/polaris/running-jobs/, read 2026-11-20)
export https_proxy="http://proxy.alcf.anl.gov:3128"

# compute nodes reach the internet through the proxy only (https://docs.alcf.anl.gov/polaris/running-jobs/, read 2026-11-20)
export ftp_proxy="http://proxy.alcf.anl.gov:3128"

# rendezvous: the job's first node
read -r MASTER_ADDR < "$PBS_NODEFILE"
export MASTER_ADDR

# rendezvous: a port of this job's own, below the ephemeral range
export MASTER_PORT=$((10000 + ${PBS_JOBID%%[!0-9]*} % 10000))

# threads for each rank: the cores it is bound to
export OMP_NUM_THREADS=8

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
# the rank, as the variables that torch.distributed and others read
export RANK="$PMI_RANK" LOCAL_RANK="$PMI_LOCAL_RANK" WORLD_SIZE=4
# CPUs planned for each local rank
cpus=(24-31 16-23 8-15 0-7)
# NUMA nodes of each local rank's cores
numa=(3 2 1 0)
# PCI addresses of those GPUs
bus=(0000:07:00.0 0000:46:00.0 0000:85:00.0 0000:c7:00.0)
# all GPUs in the order of the ranks: number LOCAL_RANK of them is the rank's own
export CUDA_VISIBLE_DEVICES=0,1,2,3
# the numbers of each local rank's GPUs in that list
own=(0 1 2 3)
# CUDA numbers the GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)
export CUDA_DEVICE_ORDER=PCI_BUS_ID
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
  IFS=, read -ra mine <<< "${CUDA_VISIBLE_DEVICES:-}"
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

mpiexec -n 4 --ppn 4 --cpu-bind list:24-31:16-23:8-15:0-7 \
  bash -c "$rank_start" rank \
  bash -c $'own=$(mktemp -d "${TMPDIR:-/tmp}/hpclaunch-eessi.XXXXXX") || exit\ntrap \'rm -rf "$own"\' EXIT\nln -s "$hpclaunch_eessi" "$own/" || exit\neessi_container.sh --mode exec --repository software.eessi.io --nvidia run --container "$hpclaunch_eessi" --resume "$own" -- "$@"' eessi bash -c 'source /cvmfs/software.eessi.io/versions/2023.06/init/lmod/bash && module load PyTorch/2.1.2-foss-2023a && exec -- "$@"' inside python train.py --deepspeed_config 'ds config.json'
