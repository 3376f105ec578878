# shellcheck shell=bash
# The cores of a rank, computed at its start from /proc and /sys: for nodes whose NUMA nodes and GPUs were not known
# when the job was planned. Ranks go to the NUMA node of their GPU and divide its cores; without one they divide all.
#
# From plan.sh: hpclaunch_ranks (of this node), hpclaunch_cores (of each), hpclaunch_threads (CPUs of each core),
# hpclaunch_gpu_variable, and places in lists of GPUs, for each local rank: hpclaunch_job_gpus (its own in the list that the
# scheduler gave the job), hpclaunch_sees (those of this list that it sees), hpclaunch_seen (its own among those).
# It sets what binding_report.sh compares with: hpclaunch_cpus, hpclaunch_numa, hpclaunch_bus, hpclaunch_own of the rank.

# CPUs of a list such as 0-3,8 as words in $cpus.
hpclaunch_expand() {
  local range
  cpus=''
  for range in ${1//,/ }; do
    local -i cpu=${range%-*}
    for (( ; cpu <= ${range#*-}; cpu++)); do cpus+=" $cpu"; done
  done
}

# The cores of CPUs $2 that the job may use, as words such as 0,64 in here[$1]: of each its first CPUs.
hpclaunch_add_cores() {
  local cpu cpus threads thread core count every
  hpclaunch_expand "$2"
  every=$cpus
  for cpu in $every; do
    [ "${allowed[$cpu]:-}" ] && [ -z "${seen[$cpu]:-}" ] || continue
    threads=$cpu core='' count=0
    { read -r threads < "$root/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list"; } 2> /dev/null || :
    hpclaunch_expand "$threads"
    for thread in $cpus; do
      seen[$thread]=1
      if [ "${allowed[$thread]:-}" ] && [ $((count++)) -lt "$hpclaunch_threads" ]; then core+=,$thread; fi
    done
    here[$1]+="${here[$1]:+ }${core:1}"
  done
}

# Those of each NUMA node; nodes has the numbers of these nodes in their order.
hpclaunch_find_cores() {
  local key value file cpu cpus list
  local -A allowed=() seen=()
  while read -r key value; do
    [ "$key" != Cpus_allowed_list: ] || break
  done < "$root/proc/self/status"
  hpclaunch_expand "$value"
  for cpu in $cpus; do allowed[$cpu]=1; done
  for file in "$root"/sys/devices/system/node/node[0-9]*/cpulist; do
    list=''
    { read -r list < "$file"; } 2> /dev/null || :
    file=${file%/cpulist}
    [ -z "$list" ] || hpclaunch_add_cores "${file##*/node}" "$list"
  done
  [ "${#here[@]}" != 0 ] || hpclaunch_add_cores 0 "$value"  # a kernel without NUMA
  nodes=("${!here[@]}")
}

# The NUMA node of the GPUs of each local rank in near[]; empty: not known, or they are on several.
hpclaunch_find_near() {
  local LOCAL_RANK on beyond doubt got_bus got_gpu_numa
  local -a mine hpclaunch_own=("${hpclaunch_job_gpus[@]}")
  for ((LOCAL_RANK = 0; LOCAL_RANK < hpclaunch_ranks; LOCAL_RANK++)); do
    near[LOCAL_RANK]='' got_bus='' got_gpu_numa='' beyond='' mine=()
    [ "${#hpclaunch_own[@]}" != 0 ] || continue
    hpclaunch_read_gpus
    for on in ${got_gpu_numa//,/ }; do
      if [ "$on" = unknown ] || [ "$on" = -1 ] || [ -z "${here[on]:-}" ] || [ "${near[LOCAL_RANK]:-$on}" != "$on" ]; then near[LOCAL_RANK]='' && break; fi
      near[LOCAL_RANK]=$on
    done
  done
}

# Which of a number of ranks $2 gets which of $3 things: rank $1 those from $first to before $end; the first ones get
# one more where they do not divide.
hpclaunch_share() {
  local each=$(($3 / $2)) more=$(($3 % $2))
  first=$(($1 * each + ($1 < more ? $1 : more)))
  end=$((first + each + ($1 < more ? 1 : 0)))
}

# The cores of this rank as words in ${mine[@]}: its part of those of its GPU's NUMA node, or of the whole machine.
hpclaunch_choose_cores() {
  local rank on='' place=0 sharing=0 known=1 first end n
  local -a pool=()
  for ((rank = 0; rank < hpclaunch_ranks; rank++)); do [ "${near[rank]}" ] || known=; done
  if [ "$known" ]; then
    on=${near[LOCAL_RANK]}
    for ((rank = 0; rank < hpclaunch_ranks; rank++)); do
      [ "${near[rank]}" = "$on" ] || continue
      if [ "$rank" -lt "$LOCAL_RANK" ]; then ((++place)); fi
      ((++sharing))
    done
    read -ra pool <<< "${here[on]}"
  elif [ "$hpclaunch_ranks" -lt ${#nodes[@]} ]; then
    hpclaunch_share "$LOCAL_RANK" "$hpclaunch_ranks" ${#nodes[@]}  # whole NUMA nodes
    for ((n = first; n < end; n++)); do read -ra mine <<< "${here[nodes[n]]}" && pool+=("${mine[@]}"); done
    place=0 sharing=1
  else
    for ((n = 0; n < ${#nodes[@]}; n++)); do
      hpclaunch_share "$n" ${#nodes[@]} "$hpclaunch_ranks"  # ranks of each NUMA node
      if [ "$first" -le "$LOCAL_RANK" ] && [ "$LOCAL_RANK" -lt "$end" ]; then
        place=$((LOCAL_RANK - first)) sharing=$((end - first))
        read -ra pool <<< "${here[nodes[n]]}"
      fi
    done
  fi
  if [ ${#pool[@]} -lt "$sharing" ]; then mine=() && return; fi
  hpclaunch_share "$place" "$sharing" ${#pool[@]}
  mine=("${pool[@]:first:$((end - first < hpclaunch_cores ? end - first : hpclaunch_cores))}")
  [ -z "$known" ] || hpclaunch_add_idle
}

# Where the GPUs are attached to some NUMA nodes only, a rank with too few cores there gets its part of the others, too.
hpclaunch_add_idle() {
  local n rank lacking=$((hpclaunch_cores - ${#mine[@]})) first end
  local -a idle=() pool=()
  for n in "${nodes[@]}"; do
    for rank in "${near[@]}"; do [ "$rank" != "$n" ] || continue 2; done
    read -ra pool <<< "${here[n]}" && idle+=("${pool[@]}")
  done
  [ "$lacking" -gt 0 ] && [ ${#idle[@]} != 0 ] || return 0
  hpclaunch_share "$LOCAL_RANK" "$hpclaunch_ranks" ${#idle[@]}
  mine+=("${idle[@]:first:$((end - first < lacking ? end - first : lacking))}")
}

hpclaunch_add_range() {
  list+=,$from
  [ "$from" = "$to" ] || list+=-$to
}

# CPU words as a sorted list such as 0-3,8 in $list.
hpclaunch_list() {
  local cpu from='' to=''
  list=''
  for cpu in $(printf '%s\n' "$@" | sort -n); do
    if [ "$to" ] && [ "$cpu" = $((to + 1)) ]; then to=$cpu && continue; fi
    [ -z "$to" ] || hpclaunch_add_range
    from=$cpu to=$cpu
  done
  hpclaunch_add_range
  list=${list:1}
}

# Sets what the report compares with; 1: this node has too few cores for that.
hpclaunch_plan_here() {
  local root=${HPCLAUNCH_SYSROOT:-} list first end node core
  local -a here=() nodes=() near=() mine=() on=()
  hpclaunch_find_cores
  hpclaunch_find_near
  hpclaunch_choose_cores
  [ ${#mine[@]} != 0 ] || return 1
  for node in "${nodes[@]}"; do
    for core in "${mine[@]}"; do
      case " ${here[node]} " in *" $core "*) on+=("$node") && break ;; esac
    done
  done
  # A library with more threads than cores would wait for itself.
  [ "${OMP_NUM_THREADS:-}" != "$hpclaunch_cores" ] || export OMP_NUM_THREADS=${#mine[@]}
  # shellcheck disable=SC2068  # the CPUs of each core are words here
  hpclaunch_list ${mine[@]//,/ }
  hpclaunch_cpus[LOCAL_RANK]=$list hpclaunch_bus[LOCAL_RANK]=''
  printf -v list '%s,' "${on[@]}"
  hpclaunch_numa[LOCAL_RANK]=${list%,}
}

# Show the rank its GPUs: where its program takes the one with the number of its local rank, all in that order.
hpclaunch_show_gpus() {
  local n list=''
  local -a given
  hpclaunch_own=("${hpclaunch_seen[@]}")
  [ "${#hpclaunch_sees[@]}" != 0 ] && [ "${!hpclaunch_gpu_variable:-}" ] || return 0
  IFS=, read -ra given <<< "${!hpclaunch_gpu_variable}"
  for n in ${hpclaunch_sees[LOCAL_RANK]//,/ }; do list+=,${given[n]:-none}; done
  export "$hpclaunch_gpu_variable=${list:1}"
}

hpclaunch_bind_here() {
  local host
  if ! hpclaunch_plan_here; then
    read -r host < /proc/sys/kernel/hostname
    echo "hpclaunch: rank $RANK on $host: fewer cores than ranks are allowed here; it stays unbound" >&2
    hpclaunch_binding=
  else
    taskset -cp "${hpclaunch_cpus[LOCAL_RANK]}" $$ > /dev/null || :
  fi
  [ -z "$hpclaunch_gpu_variable" ] || hpclaunch_show_gpus
}
