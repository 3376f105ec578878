# shellcheck shell=bash
# What hpclaunch sites probe --on-a-node asks a node: two ranks run this text, the first prints the answers between marks.
# Arguments: names of tools' outputs, each followed by the command that prints it. Nothing is changed on the node.

hpclaunch_ask() {
  echo "hpclaunch-probe begin $1"
  bash -c "$2" 2>&1
  printf '\nhpclaunch-probe end %s %s\n' "$1" $?
}

# What launchers, schedulers and libraries set; other variables are the user's own affair.
hpclaunch_known='SLURM|PMI|PMIX|PALS|FLUX|OMPI|PRTE|MPI|LSB|CUDA|NVIDIA|ROCR|HIP|GPU|ZE|NCCL|FI|UCX|MPICH|RANK|LOCAL_RANK|WORLD_SIZE|OMP'

# shellcheck disable=SC2016  # these are commands, expanded by the shell that runs them
hpclaunch_ask_all() {
  while [ $# -gt 1 ]; do
    hpclaunch_ask "$1" "$2"
    shift 2
  done
  hpclaunch_ask environment "env -0 | tr '\\n\\0' ' \\n' | grep -E '^($hpclaunch_known)(_[A-Za-z0-9_]*)?=' | LC_ALL=C sort -u"
  hpclaunch_ask limits 'ulimit -a'
  hpclaunch_ask devices 'ls -d /dev/nvidia[0-9]* /dev/kfd /dev/dri/* /dev/cxi* /dev/infiniband/* 2> /dev/null; true'
  hpclaunch_ask nics 'cd /sys/class/net && grep -H . */speed */device/numa_node 2> /dev/null; ls /sys/class/infiniband /sys/class/cxi 2> /dev/null; true'
  hpclaunch_ask memory 'grep -E "^(MemTotal|HugePages_Total):" /proc/meminfo'
  hpclaunch_ask 'cpus allowed' 'grep Cpus_allowed_list /proc/self/status'
  hpclaunch_ask internet 'curl -sSI --max-time 10 https://github.com/ > /dev/null && echo reached'
  hpclaunch_ask 'local disks' 'df -PT /tmp /dev/shm 2> /dev/null'
}

# Two ranks and their sum: by torch, else by mpi4py; with two GPUs by NCCL, which then tells its network and plugin.
hpclaunch_sum='
import os, sys
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
try:
    import torch, torch.distributed as dist
    how = "nccl" if torch.cuda.device_count() > 1 else "gloo"
    dist.init_process_group(how, rank=rank, world_size=size)
    one = torch.ones(1, device="cuda:%d" % rank if how == "nccl" else "cpu")
    dist.all_reduce(one)
    total, how = int(one.item()), "torch %s, %s" % (torch.__version__, how)
    dist.destroy_process_group()
except ImportError:
    try:
        from mpi4py import MPI
    except ImportError:
        sys.exit("neither torch nor mpi4py can be imported")
    total, how = MPI.COMM_WORLD.allreduce(1), MPI.Get_library_version().splitlines()[0]
if rank == 0:
    print("sum %d of %d ranks by %s" % (total, size, how))
'

if [ "$RANK" = 0 ]; then
  hpclaunch_ask_all "$@"
  export hpclaunch_sum
  hpclaunch_ask 'two ranks' 'NCCL_DEBUG=INFO timeout 100 python3 -c "$hpclaunch_sum"'
else
  NCCL_DEBUG=INFO timeout 100 python3 -c "$hpclaunch_sum" > /dev/null 2>&1
fi
exit 0
