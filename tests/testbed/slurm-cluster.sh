#!/bin/bash
# Start (or re-use) a private, throw-away Slurm cluster on this one machine.
# As root; or (NET=shared only; jobs of that user only) as an ordinary user who may make user namespaces.
#   slurm-cluster.sh [start|stop|status|env]        everything else comes from the environment:
#   LAB=${TMPDIR:-/tmp}/slurm-testbed  directory for config, keys, state, logs (own cluster per directory)
#   NODES=4                number of emulated nodes (n1..nN)
#   PORT=26817             slurmctld port; slurmd ports are PORT+1.. (shared net), dbd PORT+100, mysql PORT+101
#   NET=shared|netns       shared: all on 127.0.0.1;  netns: each node has its own netns + IP 10.98.S.10+i
#   SUBNET=10.98.7         the netns mode's /24
#   TASK=affinity|none     TaskPlugin
#   HW="Sockets=1 CoresPerSocket=64 ThreadsPerCore=2 RealMemory=480000"   a node's emulated hardware
#   SLURMD=config_overrides  SlurmdParameters; l3cache_as_socket, say, makes each group of cores that share an L3 cache a socket
#   GPUS=8                 GPUs of a node (0: none);  GPUTYPE=mi250;  GPUFLAGS=amd_gpu_env (sets ROCR_VISIBLE_DEVICES)
#   CORESPEC=              e.g. CpuSpecList=0-1,16-17,32-33,48-49,64-65,80-81,96-97,112-113 (LUMI-G's low-noise mode; the nodes' bindings follow it only with FAKEHW)
#   FAKEHW=                e.g. "pack:1 numa:4 l3:2 core:8 pu:2(indexes=core:l3:numa)": the slurmds see this (hwloc synthetic) topology
#                          and a LD_PRELOAD shim (gcc needed) stands for sched_{get,set}affinity: --cpu-bind masks for CPUs this machine
#                          lacks are checked by the real Slurm against its allocation, and each task's mask is in $LAB/cpus/<pid>
#   NODEGRES=              Gres of each node in place of GPUS of GPUTYPE, such as "gpu:a100:4 gpu:a100:3,gpu:1g.5gb:7 none"
#   GRESCONF=              gres.conf lines instead of the generated one (@DEV@0, @DEV@1... stand for the fake GPU devices)
#   ACCT=none|filetxt|dbd  accounting: none, job completion text file, or slurmdbd + private mariadb
#   PARTITIONS=            PartitionName lines instead of the generated ones (standard: all nodes; dev: n1)
#   MPI=none               MpiDefault: the plugin that a plain srun uses (none, pmi2, pmix)
#   MINJOBAGE=600          seconds that slurmctld remembers an ended job
#   OWNER=                 a process id: when it has ended, so does the cluster (a killed test run leaves nothing)
#   EXTRA=                 extra slurm.conf lines
# Needs (Debian 12): slurmctld slurmd slurm-client munge; --mpi=pmix: libpmix2 libpmix-dev;
# ACCT=dbd: slurmdbd slurm-wlm-mysql-plugin mariadb-server.  On success prints "export SLURM_CONF=...".
set -u
LAB=${LAB:-${TMPDIR:-/tmp}/slurm-testbed}; NODES=${NODES:-4}; PORT=${PORT:-26817}; NET=${NET:-shared}; SUBNET=${SUBNET:-10.98.7}
TASK=${TASK:-affinity}; HW=${HW:-Sockets=1 CoresPerSocket=64 ThreadsPerCore=2 RealMemory=480000}
SLURMD=${SLURMD:-config_overrides}; GPUS=${GPUS:-8}; GPUTYPE=${GPUTYPE:-mi250}; GPUFLAGS=${GPUFLAGS-amd_gpu_env}; CORESPEC=${CORESPEC:-}
PARTITIONS=${PARTITIONS:-}; MPI=${MPI:-none}; MINJOBAGE=${MINJOBAGE:-600}; OWNER=${OWNER:-}
ACCT=${ACCT:-none}; EXTRA=${EXTRA:-}; FAKEHW=${FAKEHW:-}; GRESCONF=${GRESCONF:-}; NODEGRES=${NODEGRES:-}
HOST=$(hostname -s); ACTION=${1:-start}
BR=sl${PORT}; [ "$NET" = netns ] && CTLIP=$SUBNET.1 || CTLIP=127.0.0.1
export SLURM_CONF=$LAB/slurm.conf

running() { [ -n "$1" ] && kill -0 "$1" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
alive() { [ -s "$1" ] && running "$(cat "$1")"; }
endpids() {  # end processes we started, by their pid files (TERM to all, then wait; a daemon removes its pid file before it has ended)
  local f p ps=(); for f in "$@"; do alive "$f" && ps+=("$(cat "$f")"); done
  [ ${#ps[@]} -gt 0 ] || return 0; kill "${ps[@]}"
  for _ in $(seq 60); do local left=; for p in "${ps[@]}"; do running "$p" && left=1; done; [ "$left" ] || return 0; sleep 0.05; done
  for p in "${ps[@]}"; do running "$p" && kill -9 "$p"; done; }
wait_for() { local end=$((SECONDS+$1)); shift; while :; do "$@" >/dev/null 2>&1 && return 0; [ $SECONDS -ge $end ] && return 1; sleep 0.05; done; }
failed() { echo "slurm-cluster.sh: $1 did not start; the end of $2:" >&2; tail -n 40 "$2" >&2; exit 1; }
nodes_up() { [ "$(sinfo -h -N -o '%N %t' | sort -u | grep -cE ' (idle|mix|alloc|comp)$')" -ge "$NODES" ]; }

if [ "$ACTION" = env ]; then echo "export SLURM_CONF=$SLURM_CONF"; exit 0; fi
if [ "$ACTION" = status ]; then scontrol ping; sinfo -N; exit; fi
if [ "$ACTION" = stop ]; then
  [ -f "$SLURM_CONF" ] && timeout 5 scancel --me --full 2>/dev/null
  [ "$(cat "$LAB/pid/watch.pid" 2>/dev/null)" = $$ ] || endpids "$LAB/pid/watch.pid"   # unless it is the watch that stops it
  endpids "$LAB"/pid/slurmd-*.pid "$LAB"/pid/slurmctld.pid; endpids "$LAB"/pid/slurmdbd.pid
  endpids "$LAB"/pid/mariadbd.pid "$LAB"/munge/munged.pid
  if [ "$NET" = netns ]; then for i in $(seq "$NODES"); do ip netns del "$BR-n$i" 2>/dev/null; done; ip link del "$BR" 2>/dev/null; fi
  exit 0
fi
ME=$(id -un); NSFLAGS=; DEV=$LAB/dev/gpu
if [ "$(id -u)" != 0 ]; then
  [ "$NET" = netns ] && { echo "slurm-cluster.sh: NET=netns needs root" >&2; exit 2; }
  NSFLAGS="--map-current-user --keep-caps"; DEV=/dev/tty     # no mknod: any character devices with numbers do
fi

mkdir -p "$LAB"/{state,log,munge,pid,dev}; chmod 755 "$LAB"; chmod 711 "$LAB/munge"
# --- munge, own key and socket
if ! alive "$LAB/munge/munged.pid"; then
  [ -s "$LAB/munge/munge.key" ] || (umask 077; head -c 128 /dev/urandom > "$LAB/munge/munge.key")
  munged --force --key-file="$LAB/munge/munge.key" --socket="$LAB/munge/munge.sock" --pid-file="$LAB/munge/munged.pid" \
         --log-file="$LAB/munge/munged.log" --seed-file="$LAB/munge/munged.seed" || failed "munged" "$LAB/munge/munged.log"
fi
# --- hosts file for the nodes, fake GPU devices, config
{ echo "127.0.0.1 localhost"; [ "$NET" = netns ] && echo "$CTLIP $HOST" || echo "127.0.0.1 $HOST"
  for i in $(seq "$NODES"); do [ "$NET" = netns ] && echo "$SUBNET.$((10+i)) n$i" || echo "127.0.0.1 n$i"; done; } > "$LAB/hosts"
GRES=; : > "$LAB/gres.conf"
read -ra OWNGRES <<< "$NODEGRES"
[ -z "$NODEGRES" ] || GPUS=16
if [ "$GPUS" -gt 0 ]; then
  [ "$DEV" = /dev/tty ] || for g in $(seq 0 $((GPUS-1))); do [ -c "$LAB/dev/gpu$g" ] || mknod "$LAB/dev/gpu$g" c 1 3; done   # a character device is enough
  GRES="Gres=gpu:$GPUTYPE:$GPUS"
  if [ "$NODEGRES" ]; then
    for i in "${!OWNGRES[@]}"; do
      at=0
      for one in ${OWNGRES[i]//,/ }; do
        IFS=: read -r _ type count <<< "$one"
        [ "$one" = none ] || echo "NodeName=n$((i+1)) Name=gpu Type=$type File=${DEV}[$at-$((at+count-1))]${GPUFLAGS:+ Flags=$GPUFLAGS}" >> "$LAB/gres.conf"
        at=$((at+${count:-0}))
      done
    done
  elif [ "$GRESCONF" ]; then echo "${GRESCONF//@DEV@/$DEV}" > "$LAB/gres.conf"
  else echo "NodeName=n[1-$NODES] Name=gpu Type=$GPUTYPE File=${DEV}[0-$((GPUS-1))]${GPUFLAGS:+ Flags=$GPUFLAGS}" > "$LAB/gres.conf"; fi
fi
case $ACCT in
  none)    AC="AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none" ;;
  filetxt) AC="AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc=$LAB/jobcomp.log" ;;
  dbd)     AC="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=$((PORT+100))
AccountingStoragePass=$LAB/munge/munge.sock
AccountingStorageTRES=gres/gpu
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1" ;;
esac
for i in $(seq "$NODES"); do mkdir -p "$LAB/spool/n$i" "$LAB/tmp/n$i"; done
# Clusters on one machine see each other's processes: no two of them have running jobs with the same number.
{ cat <<EOF
ClusterName=${CLUSTER:-lab}
SlurmctldHost=$HOST($CTLIP)
SlurmctldPort=$PORT
SlurmUser=$ME
SlurmdUser=$ME
AuthType=auth/munge
AuthInfo=socket=$LAB/munge/munge.sock,cred_expire=5
CredType=cred/munge
StateSaveLocation=$LAB/state
SlurmdSpoolDir=$LAB/spool/%n
TmpFS=$LAB/tmp/%n
SlurmctldPidFile=$LAB/pid/slurmctld.pid
SlurmdPidFile=$LAB/pid/slurmd-%n.pid
SlurmctldLogFile=$LAB/log/slurmctld.log
SlurmdLogFile=$LAB/log/slurmd-%n.log
SlurmctldDebug=verbose
SlurmdDebug=verbose
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/$TASK
SwitchType=switch/none
MpiDefault=$MPI
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
EnforcePartLimits=ALL
SlurmdParameters=$SLURMD
ReturnToService=2
KillWait=2
MinJobAge=$MINJOBAGE
FirstJobId=${FIRSTJOB:-$((PORT * 1013 + 1))}
GresTypes=gpu
EOF
echo "$AC"
for i in $(seq "$NODES"); do
  if [ "$NET" = netns ]; then A="NodeAddr=$SUBNET.$((10+i)) Port=$((PORT+1))"; else A="NodeAddr=127.0.0.1 Port=$((PORT+i))"; fi
  [ -z "$NODEGRES" ] || { GRES=Gres=${OWNGRES[i-1]}; [ "$GRES" != Gres=none ] || GRES=; }
  echo "NodeName=n$i NodeHostname=$([ "$NET" = netns ] && echo "n$i" || echo "$HOST") $A $HW $CORESPEC $GRES State=UNKNOWN"
done
echo "${PARTITIONS:-PartitionName=standard Nodes=ALL Default=YES DefaultTime=00:30:00 MaxTime=2-00:00:00 State=UP
PartitionName=dev Nodes=n1 MaxTime=00:30:00 State=UP}"
echo "$EXTRA"; } > "$SLURM_CONF.new"
if ! cmp -s "$SLURM_CONF.new" "$SLURM_CONF" 2>/dev/null; then
  # a changed config: the old daemons must go first
  endpids "$LAB"/pid/slurmd-*.pid "$LAB"/pid/slurmctld.pid
  mv "$SLURM_CONF.new" "$SLURM_CONF"
else rm -f "$SLURM_CONF.new"; fi
# --- accounting database
if [ "$ACCT" = dbd ]; then
  if ! alive "$LAB/pid/mariadbd.pid"; then
    # a mariadbd that starts removes the temporary tables of all others whose folder for them is the same
    tmp=$LAB/mysql-tmp; mkdir -p "$tmp"
    if [ ! -d "$LAB/mysql/mysql" ]; then
      TMPDIR=$tmp mariadb-install-db --no-defaults --datadir="$LAB/mysql" --user="$ME" --auth-root-authentication-method=normal --skip-test-db > "$LAB/log/mysql-install.log" 2>&1 || failed "mariadb-install-db" "$LAB/log/mysql-install.log"
    fi
    # one statement per line; 127.0.0.1 is looked up and comes in as slurm@localhost
    printf '%s;\n' "CREATE DATABASE IF NOT EXISTS slurm_acct" "CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED BY 'lab'" \
      "GRANT ALL ON slurm_acct.* TO slurm@localhost" > "$LAB/mysql.init"
    TMPDIR=$tmp mariadbd --no-defaults --user="$ME" --datadir="$LAB/mysql" --socket="$LAB/mysql.sock" --pid-file="$LAB/pid/mariadbd.pid" --bind-address=127.0.0.1 --port=$((PORT+101)) \
      --skip-log-bin --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 --init-file="$LAB/mysql.init" > "$LAB/log/mariadbd.log" 2>&1 < /dev/null &
    wait_for 20 mariadb-admin --no-defaults --protocol=tcp -h 127.0.0.1 -P $((PORT+101)) -u slurm -plab ping || failed "mariadbd" "$LAB/log/mariadbd.log"
  fi
  if ! alive "$LAB/pid/slurmdbd.pid"; then
    cat > "$LAB/slurmdbd.conf" <<EOF
AuthType=auth/munge
AuthInfo=socket=$LAB/munge/munge.sock,cred_expire=5
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((PORT+100))
SlurmUser=$ME
LogFile=$LAB/log/slurmdbd.log
PidFile=$LAB/pid/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((PORT+101))
StorageUser=slurm
StoragePass=lab
StorageLoc=slurm_acct
EOF
    chmod 600 "$LAB/slurmdbd.conf"; slurmdbd || failed "slurmdbd" "$LAB/log/slurmdbd.log"
    wait_for 20 sacctmgr -n list cluster || failed "slurmdbd" "$LAB/log/slurmdbd.log"
    [ -n "$(sacctmgr -nP list cluster lab)" ] || sacctmgr -i add cluster lab > /dev/null
  fi
fi
# --- a second lab on the same ports would fail late and obscurely
port_free() { ! (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }
alive "$LAB/pid/slurmctld.pid" || port_free 127.0.0.1 "$PORT" || { echo "slurm-cluster.sh: port $PORT is in use (another lab? set PORT)" >&2; exit 3; }
# --- the controller, then one slurmd per node in its own UTS + mount (+ net) namespace
alive "$LAB/pid/slurmctld.pid" || slurmctld -i -f "$SLURM_CONF" || failed "slurmctld" "$LAB/log/slurmctld.log"
if [ "$NET" = netns ]; then
  ip link show "$BR" >/dev/null 2>&1 || { ip link add "$BR" type bridge && ip addr add "$SUBNET.1/24" dev "$BR" && ip link set "$BR" up; } || exit 1
fi
FAKE=()
if [ "$FAKEHW" ]; then
  mkdir -p "$LAB/cpus" && chmod 1777 "$LAB/cpus"
  [ -s "$LAB/fakecpu.so" ] || { cat > "$LAB/fakecpu.c" <<'EOF'
/* LD_PRELOAD for slurmd/slurmstepd (and, if wanted, tasks): pretend to have FAKECPU_N CPUs.
   sched_setaffinity records the wanted mask of a process in $FAKECPU_DIR/<pid> and binds it really to (cpu mod real). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>
static int n(void){ const char*s=getenv("FAKECPU_N"); return s?atoi(s):128; }
static const char*dir(void){ const char*s=getenv("FAKECPU_DIR"); return s?s:"/tmp/fakecpu"; }
static void path(char*b,size_t l,int pid){ snprintf(b,l,"%s/%d",dir(),pid?pid:(int)getpid()); }
int sched_setaffinity(pid_t pid,size_t sz,const cpu_set_t*m){
  int any=0,N=n(); for(int i=0;i<N&&i<(int)sz*8;i++) if(CPU_ISSET_S(i,sz,m)) any=1;
  if(!any){ errno=EINVAL; return -1; }
  char b[512]; path(b,sizeof b,pid); FILE*f=fopen(b,"w");
  if(f){ for(int i=0;i<N&&i<(int)sz*8;i++) if(CPU_ISSET_S(i,sz,m)) fprintf(f,"%d ",i); fclose(f);}
  cpu_set_t real; CPU_ZERO(&real); long k=sysconf(_SC_NPROCESSORS_CONF);
  for(int i=0;i<N&&i<(int)sz*8;i++) if(CPU_ISSET_S(i,sz,m)) CPU_SET(i%k,&real);
  syscall(SYS_sched_setaffinity,pid,sizeof real,&real); return 0; }
int sched_getaffinity(pid_t pid,size_t sz,cpu_set_t*m){
  int N=n(); if(sz*8<(size_t)N){ errno=EINVAL; return -1; } memset(m,0,sz); char b[512]; path(b,sizeof b,pid); FILE*f=fopen(b,"r"); int c,got=0;
  if(!f&&!pid){ path(b,sizeof b,getppid()); f=fopen(b,"r"); }
  if(f){ while(fscanf(f,"%d",&c)==1) if(c<(int)sz*8){ CPU_SET_S(c,sz,m); got=1;} fclose(f);}
  if(!got) for(int i=0;i<N&&i<(int)sz*8;i++) CPU_SET_S(i,sz,m);
  return 0; }
EOF
    gcc -shared -fPIC -O1 -o "$LAB/fakecpu.so" "$LAB/fakecpu.c" -ldl || exit 1; }
  FAKE=("HWLOC_SYNTHETIC=$FAKEHW" HWLOC_THISSYSTEM=1 "FAKECPU_DIR=$LAB/cpus" "FAKECPU_N=${FAKECPU_N:-128}" "LD_PRELOAD=$LAB/fakecpu.so")
fi
for i in $(seq "$NODES"); do
  n=n$i; alive "$LAB/pid/slurmd-$n.pid" && continue
  IN=
  if [ "$NET" = netns ]; then
    if ! [ -e "/run/netns/$BR-$n" ]; then
      ip netns add "$BR-$n" && ip link add "v$i-$PORT" type veth peer name eth0 netns "$BR-$n" && ip link set "v$i-$PORT" master "$BR" up &&
      ip -n "$BR-$n" addr add "$SUBNET.$((10+i))/24" dev eth0 && ip -n "$BR-$n" link set eth0 up && ip -n "$BR-$n" link set lo up || exit 1
    fi
    IN="nsenter --net=/run/netns/$BR-$n"
  fi
  # own host name (Open MPI/PMIx look local peers up by it), own /etc/hosts, own /dev/shm (shared-memory file names clash otherwise)
  $IN unshare $NSFLAGS --uts --mount --propagation private sh -c '
    hostname "$1" && mount --bind "$2/hosts" /etc/hosts && mount -t tmpfs -o mode=1777 shm /dev/shm && c=$2 n=$1; shift 2; exec env "$@" slurmd -N "$n" -f "$c/slurm.conf"' sh "$n" "$LAB" ${FAKE[@]+"${FAKE[@]}"} </dev/null || failed "slurmd of $n" "$LAB/log/slurmd-$n.log"
done
if [ "$OWNER" ] && ! alive "$LAB/pid/watch.pid"; then
  # tail waits without a process per second, as a loop of sleeps would start: there are many of these
  setsid bash -c 'tail -f --pid="$1" /dev/null; exec "$2" stop' watch "$OWNER" "$(readlink -f "$0")" >/dev/null 2>&1 </dev/null &
  echo $! > "$LAB/pid/watch.pid"
fi
wait_for 20 nodes_up || { echo "nodes did not come up:" >&2; timeout 5 sinfo -N -o '%N %T %E' >&2; tail -n 5 "$LAB/log/slurmctld.log" "$LAB/log/slurmd-n1.log" >&2; exit 1; }
echo "export SLURM_CONF=$SLURM_CONF"
