# shellcheck shell=bash
# The binding that a rank has, read from /proc and /sys and compared with the plan: one line in the job's folder.
#
# The plan's variables are those of plan.sh: for each local rank hpclaunch_cpus, hpclaunch_numa (the NUMA nodes of its
# cores), hpclaunch_bus (PCI addresses of its GPUs) and, where a rank sees more than its own GPUs, hpclaunch_own (the
# numbers of its own among them); hpclaunch_gpu_variable has the name of the variable that shows a rank its GPUs. All
# else is local to functions, so that no variable of the program's environment is changed. They share the variables of
# hpclaunch_report. HPCLAUNCH_SYSROOT: a folder with other /proc and /sys.

# CPUs and memory. A memory policy (numactl, srun --mem-bind) stands in numa_maps, and the program inherits it. It is
# written as Linux 6.12 does (mm/mempolicy.c); "prefer (many)" is there from 5.15 on, "weighted interleave" from 6.9 on.
hpclaunch_read_masks() {
  local key value policy
  while read -r key value; do
    case $key in
      Cpus_allowed_list:) got_cpus=$value ;;
      Mems_allowed_list:) got_mems=$value ;;
    esac
  done < "$root/proc/self/status"
  mems_shown=$got_mems
  read -r _ policy 2> /dev/null < "$root/proc/self/numa_maps" || return 0
  policy=${policy/#'prefer (many)'/prefer-many} policy=${policy/#weighted /weighted-} policy=${policy%% *}
  case $policy in
    bind*:* | prefer-many*:*) got_mems=${policy##*:} ;;
    prefer*:* | interleave*:* | weighted-interleave*:*) foreign=${policy##*:} ;;  # pages go to all of these nodes
    default | local) ;;
    *) doubt=1 ;;
  esac
  case $policy in bind*) mems_shown=$got_mems ;; *:*) mems_shown=$policy ;; esac
}

# PCI addresses of this node's GPUs in the order of their indices: AMD's from kfd, NVIDIA's from its driver.
hpclaunch_find_gpus() {
  local n node key value id simd_count location_id domain
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
    id='' n=''
    # "GPU UUID:   GPU-8932f937-..." (the driver's README, "The /proc Interface"); ? where it is not shown.
    while IFS=: read -r key value; do
      case $key in 'GPU UUID') id=${value//[[:space:]]/} ;; 'Device Minor') n=${value//[[:space:]]/} ;; esac
    done 2> /dev/null < "$node/information"
    # Of a node that is shared the numbers count the job's own GPUs, which alone can be opened (ConstrainDevices).
    if [ "${hpclaunch_some_gpus:-}" ] && [ -e "$root/dev/nvidia$n" ]; then
      { : < "$root/dev/nvidia$n"; } 2> /dev/null || continue
    fi
    found+=("${node##*/}") uuids+=("$id")
  done
}

# Address and NUMA node of each GPU that is this rank's.
hpclaunch_read_gpus() {
  local n gpu id on
  local -a found=() uuids=() sees
  hpclaunch_find_gpus
  IFS=, read -ra mine <<< "${!hpclaunch_gpu_variable:-}"
  if [ "${#hpclaunch_own[@]}" != 0 ]; then
    sees=("${mine[@]}") mine=()
    for n in ${hpclaunch_own[LOCAL_RANK]//,/ }; do mine+=("${sees[n]:-none}"); done  # those planned for it
  fi
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
}

# Memory must be allowed on each NUMA node of the rank's cores, and may be on more. A policy that prefers or interleaves
# may name the rank's own nodes only.
hpclaunch_judge_memory() {
  local node rest range here
  for node in ${planned_numa//,/ }; do
    here='' rest=${got_mems:-$node},
    while [ "$rest" ]; do
      range=${rest%%,*} rest=${rest#*,}
      if [ "${range%-*}" -le "$node" ] && [ "$node" -le "${range#*-}" ]; then here=1; fi
    done
    [ "$here" ] || verdict='memory-on-another-numa-node'
  done
  rest=${foreign:+$foreign,}
  if [ -z "$planned_numa" ]; then doubt+=$rest rest=''; fi
  while [ "$rest" ]; do
    range=${rest%%,*} rest=${rest#*,}
    for ((node = ${range%-*}; node <= ${range#*-}; node++)); do
      case ,$planned_numa, in *,"$node",*) ;; *) verdict='memory-on-another-numa-node' ;; esac
    done
  done
}

hpclaunch_judge_gpus() {
  local on
  case $got_bus in
    *unknown*) ;;  # no driver shows the addresses here
    ",${hpclaunch_bus[LOCAL_RANK]}") ;;
    *) [ -z "${hpclaunch_bus[LOCAL_RANK]}" ] || verdict='other-gpus' ;;
  esac
  for on in ${got_gpu_numa//,/ }; do
    case ,$planned_numa,unknown,-1, in *,"$on",*) ;; *) verdict='gpu-on-another-numa-node' ;; esac
  done
  [ -z "$beyond" ] || verdict='no-such-gpu'
}

hpclaunch_report() {
  local root=${HPCLAUNCH_SYSROOT:-} got_cpus='' got_mems='' mems_shown host verdict=ok report shown=none
  local foreign='' doubt='' got_bus='' got_gpu_numa='' beyond='' planned_numa=${hpclaunch_numa[LOCAL_RANK]}
  local -a mine=()
  hpclaunch_read_masks
  read -r host < "$root/proc/sys/kernel/hostname"
  [ -z "$hpclaunch_gpu_variable" ] || hpclaunch_read_gpus
  [ "$got_cpus" = "${hpclaunch_cpus[LOCAL_RANK]}" ] || verdict='cpus-differ'
  hpclaunch_judge_memory
  if [ "$hpclaunch_gpu_variable" ]; then
    hpclaunch_judge_gpus
    printf -v shown '%s,' "${mine[@]}"
    shown=${shown%,}
  fi
  [ "$verdict" != ok ] || [ -z "$doubt" ] || verdict='not-judged'
  printf -v report 'hpclaunch-binding rank=%s host=%s local_rank=%s cpus=%s planned=%s mems=%s gpus=%s bus=%s gpu_numa=%s verdict=%s' \
    "$RANK" "$host" "$LOCAL_RANK" "$got_cpus" "${hpclaunch_cpus[LOCAL_RANK]}" "${mems_shown:-unknown}" \
    "${shown:-none}" "${got_bus:1}" "${got_gpu_numa:1}" "$verdict"
  # One file per node: appending to one file from several nodes is not safe on NFS. Without room there: the log.
  { printf '%s\n' "$report" >> "$HPCLAUNCH_JOB_FOLDER/binding/$host"; } 2> /dev/null || printf '%s\n' "$report"
  if [ "$hpclaunch_binding" = strict ] && [ "$verdict" != ok ] && [ "$verdict" != not-judged ]; then
    echo "hpclaunch: rank $RANK on $host did not get its binding ($verdict); ended by --binding strict" >&2
    exit 1
  fi
  ( hpclaunch_watch $$ "$got_cpus" "$HPCLAUNCH_JOB_FOLDER/binding/$host" & ) < /dev/null > /dev/null 2>&1
}
