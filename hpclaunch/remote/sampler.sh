#!/bin/bash
# The sampler of one node: reads counters every SECONDS s for `hpclaunch report`, and appends them to FILE.
#
#   bash sampler.sh PROCESS SECONDS FILE
#   bash sampler.sh summary FOLDER JOB    prints one line about all files of FOLDER, if they cover SECONDS at least
#
# Local rank 0 starts it; it ends with that rank, PROCESS, or by SIGTERM. It is not a child of the program, holds none
# of its files, and its own end changes nothing for the job. All that it reads stands in /proc and /sys, which takes no
# process; nvidia-smi and amd-smi run once and print on, rocm-smi can only be started again, so it is each tenth time.
#
# Lines of FILE, times in seconds since 1970:
#   rank RANK PROCESS TIME                         by each rank as it starts
#   start TIME every=S run=N cpus=N mem=KIB        by the sampler, once in a run
#   node TIME key=value ...                        see sample_node
#   proc TIME RANK CPU-TICKS RSS-KIB PEAK-RSS-KIB PROCESSES
#   gpu TIME PCI-ADDRESS BUSY% USED-BYTES ALL-BYTES MICROWATTS
#   nvidia-smi|amd-smi|rocm-smi TIME LINE          what the tool printed
#   end TIME

if [ "$1" = summary ]; then
  exec awk -v job="$3" '
    function number(text) { sub(/^[^=]*=/, "", text); return text + 0 }
    $1 == "start" {
      split(FILENAME, path, "/"); host = path[length(path)]; first = ""; every = number($3); all = number($6); split("", ticks)
    }
    $1 == "proc" {  # the job only: others may run on the node
      ranks[$3] = 1
      if ($2 != at) { at = $2; sum = 0 }
      sum += $5 > $6 ? $5 : $6
      if (sum > most) { most = sum; of = all; on = host }
      if ($3 in ticks && $4 > ticks[$3]) used += $4 - ticks[$3]
      ticks[$3] = $4
    }
    $1 == "nvidia-smi" { split($0, cell, ","); busy += cell[2]; looks++ }
    $1 == "gpu" { busy += $4; looks++ }
    $1 == "node" {
      for (n = 3; n <= NF; n++) {
        if ($n ~ /^energy=/) { joule = number($n); counted = 1 }
      }
      if (first == "") { first = $2; joule0 = joule }
      else {
        if ($2 - first >= every) enough = 1
        nodes[host] = 1; energy += joule - joule0
        seconds += $2 - last; joule0 = joule
      }
      last = $2
    }
    END {
      if (!enough) exit
      for (name in nodes) count++
      for (name in ranks) total++
      printf "hpclaunch: %d node%s, %d rank%s:", count, count == 1 ? "" : "s", total, total == 1 ? "" : "s"
      if (seconds) printf " they kept %.1f CPUs of a node busy on average,", used / 100 / seconds
      if (most < 1048576) printf " at most %.0f MiB", most / 1024
      else printf " at most %.1f", most / 1048576
      printf " of %.1f GiB in use (%s)", of / 1048576, on
      if (looks) printf ", GPUs %.0f %% busy", busy / looks
      if (counted) printf ", %.3g kWh", energy / 3600000
      printf "; more: hpclaunch report %s\n", job
    }' "$2"/*
fi

process=$1 every=$2 file=$3 root=${HPCLAUNCH_SYSROOT:-}

cd "/proc/$process" || exit 0  # stays this process, also when its number is used again
trap '' INT HUP USR1 USR2
for fd in /proc/self/fd/*; do  # those of the rank, such as its connection to the launcher
  fd=${fd##*/}
  [ "$fd" -le 2 ] || [ "$fd" = 255 ] || exec {fd}>&-
done
exec {never}<> <(:)  # a pipe in which nothing arrives: waiting for it needs no process
out='' gpus='' tool='' tool_process='' memory='' cpu='' scope=none amd=() rapl=()
declare -A process_of

# Find what this node has, once.
find_sources() {
  local number names path dir key value cpus kib=0 base
  for dir in "$root"/sys/class/drm/card*/device; do
    [ -r "$dir/gpu_busy_percent" ] && [ -r "$dir/mem_info_vram_used" ] && amd+=("$dir")
  done
  for dir in "$root"/sys/class/powercap/intel-rapl:*; do
    value=''
    [ ! -r "$dir/energy_uj" ] || read -r value < "$dir/name"
    case $value in package-* | dram) rapl+=("$dir") ;; esac
  done
  # The job's cgroup where the scheduler makes one (Slurm: job_NUMBER), else this process' own.
  while IFS=: read -r number names path; do
    base=$path
    case $path in */job_[0-9]*) base=${path%%/job_[0-9]*} value=${path#"$base"/} base=$base/${value%%/*} ;; esac
    case ,$names, in
      ,,) [ -r "$root/sys/fs/cgroup$base/memory.current" ] || continue
        memory=$root/sys/fs/cgroup$base cpu=$memory/cpu.stat ;;
      *,memory,*) [ -r "$root/sys/fs/cgroup/memory$base/memory.usage_in_bytes" ] || continue
        memory=$root/sys/fs/cgroup/memory$base ;;
      *,cpuacct,*) for dir in "$names" cpuacct; do
          [ ! -r "$root/sys/fs/cgroup/$dir$base/cpuacct.usage" ] || cpu=$root/sys/fs/cgroup/$dir$base/cpuacct.usage
        done
        continue ;;
      *) continue ;;
    esac
    scope=own
    [ "$base" = "$path" ] && [[ $path != */job_[0-9]* ]] || scope=job
  done < /proc/self/cgroup
  cpus=0
  while read -r key value; do case $key in cpu[0-9]*) cpus=$((cpus + 1)) ;; cpu) ;; *) break ;; esac; done < /proc/stat
  while read -r key value _; do case $key in MemTotal:) kib=$value && break ;; esac; done < /proc/meminfo
  printf 'start %s every=%s run=%s cpus=%s mem=%s cgroup=%s\n' "$now" "$every" \
    "${HPCLAUNCH_RESTART:-${SLURM_RESTART_COUNT:-0}}" "$cpus" "$kib" "$scope" >> "$file"
}

# Start the tool that prints what the GPUs do, where the kernel does not say it.
start_tool() {
  [ "${#amd[@]}" = 0 ] || return
  local name
  for name in nvidia-smi amd-smi rocm-smi; do [ -z "$tool" ] && type -P "$name" > /dev/null && tool=$name; done
  case $tool in
    nvidia-smi) exec {gpus}< <(exec nvidia-smi --format=csv,noheader,nounits -l "$every" \
        --query-gpu=pci.bus_id,utilization.gpu,memory.used,memory.total,power.draw) ;;
    amd-smi) exec {gpus}< <(exec amd-smi metric --usage --mem-usage --power --csv -w "$every") ;;
    *) return ;;
  esac
  tool_process=$!
}

# key=value: cpu, the busy and all CPU ticks of the node; mem, its KiB in use; of the cgroup bytes in use, their peak, their
# limit and microseconds of CPU time; J of Cray's counters; uJ of the processors' (RAPL).
sample_node() {
  local key value unit user nice system idle iowait irq softirq steal total=0 free=0 name
  read -r key user nice system idle iowait irq softirq steal _ < /proc/stat
  while read -r key value unit; do
    case $key in MemTotal:) total=$value ;; MemAvailable:) free=$value && break ;; esac
  done < /proc/meminfo
  value=$((user + nice + system + irq + softirq + steal))
  out+="node $now cpu=$value/$((value + idle + iowait)) mem=$((total - free))"
  if [ "$memory" ]; then
    for name in now:memory.current now:memory.usage_in_bytes peak:memory.peak peak:memory.max_usage_in_bytes \
      limit:memory.max limit:memory.limit_in_bytes; do
      if [ -r "$memory/${name#*:}" ] && read -r value < "$memory/${name#*:}"; then out+=" ${name%%:*}=$value"; fi
    done
  fi
  if [ "$cpu" ] && read -r key value < "$cpu"; then
    [ "$key" = usage_usec ] || value=$((key / 1000))  # the first line of cpu.stat (v2), nanoseconds (v1)
    out+=" used=$value"
  fi
  for name in "$root"/sys/cray/pm_counters/*energy; do
    if [ -r "$name" ] && read -r value _ < "$name"; then out+=" ${name##*/}=$value"; fi
  done
  for name in "${rapl[@]}"; do
    if read -r value < "$name/energy_uj" && read -r unit < "$name/max_energy_range_uj"; then
      out+=" ${name##*/}=$value/$unit"
    fi
  done
  out+=$'\n'
}

# The processes of a rank: CPU ticks (USER_HZ is 100 on all machines we know), memory now, peak of its first process.
sample_rank() {
  local rank=$1 task kid line ticks=0 rss=0 hwm='' n=0 at tasks kids fields lines
  tasks=("${process_of[$rank]}")
  while [ "$n" -lt "${#tasks[@]}" ] && [ "$n" -lt 512 ]; do
    task=/proc/${tasks[n]} n=$((n + 1))
    read -r line < "$task/stat" || continue
    read -ra fields <<< "${line##*) }"
    ticks=$((ticks + fields[11] + fields[12] + fields[13] + fields[14]))
    mapfile -t lines < "$task/status"
    for ((at = 16; at < ${#lines[@]}; at++)); do
      line=${lines[at]}
      case $line in
        VmHWM:*) line=${line#*:} && [ "$hwm" ] || hwm=${line//[!0-9]/} ;;
        VmRSS:*) line=${line#*:} && rss=$((rss + ${line//[!0-9]/})) && break ;;
      esac
    done
    for kid in "$task"/task/*/children; do
      kids=()
      read -ra kids < "$kid"  # without a line break, which read takes for a failure
      tasks+=("${kids[@]}")
    done
  done
  [ "$ticks" = 0 ] && [ "$rss" = 0 ] || out+="proc $now $rank $ticks $rss ${hwm:-0} $n"$'\n'
}

sample_gpus() {
  local dir busy used all watts address name line
  for dir in "${amd[@]}"; do
    { read -r busy < "$dir/gpu_busy_percent" && read -r used < "$dir/mem_info_vram_used"; } || continue
    read -r all < "$dir/mem_info_vram_total" || all=-
    watts=-
    for name in "$dir"/hwmon/hwmon*/power1_average "$dir"/hwmon/hwmon*/power1_input; do
      if [ -r "$name" ] && read -r watts < "$name"; then break; fi
    done
    address=-
    while IFS='=' read -r name line; do [ "$name" != PCI_SLOT_NAME ] || address=$line; done < "$dir/uevent"
    out+="gpu $now $address $busy $used $all $watts"$'\n'
  done
  if [ "$tool" = rocm-smi ] && [ $((count % 10)) = 1 ]; then
    while read -r line; do out+="rocm-smi $now $line"$'\n'; done \
      < <(timeout 20 rocm-smi --showbus --showuse --showmeminfo vram --showpower --csv)
  fi
}

sample() {
  local word rank number time
  printf -v now '%(%s)T' -1
  if [ "$count" -lt 20 ]; then  # ranks that have started since; not those of an earlier run
    while read -r word rank number time _ <&"$ranks"; do
      [ "$word" != rank ] || [ $((time + 300)) -lt "$begin" ] || process_of[$rank]=$number
    done
  fi
  sample_node
  for rank in "${!process_of[@]}"; do sample_rank "$rank"; done
  sample_gpus
  printf '%s' "$out" >> "$file"
  out='' count=$((count + 1))
}

finish() {
  trap - EXIT TERM
  [ -z "$tool_process" ] || kill "$tool_process"
  sample
  printf 'end %s\n' "$now" >> "$file"
  exit 0
}

printf -v now '%(%s)T' -1
begin=$now count=0
exec {ranks}< "$file"
find_sources
start_tool
trap finish EXIT
trap 'exit 0' TERM
next=$now wait=2  # the first looks are close together: 0, 2, 6, 14 s, for short jobs
while [ -e task ]; do
  if [ "$now" -ge "$next" ]; then
    sample
    [ "$wait" -lt "$every" ] || wait=$every
    next=$((next + wait)) wait=$((wait * 2))
  fi
  if [ "$gpus" ]; then
    status=0 line=''
    read -rt 1 -u "$gpus" line || status=$?
    if [ "$line" ]; then out+="$tool $now $line"$'\n'; elif [ "$status" = 1 ]; then exec {gpus}<&- && gpus=''; fi
  else
    read -rt 1 -u "$never" || :
  fi
  printf -v now '%(%s)T' -1
done
