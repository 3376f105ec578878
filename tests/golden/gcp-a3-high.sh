#!/bin/bash
#SBATCH --job-name=mnist  # the name in squeue
#SBATCH --nodes=4  # nodes
#SBATCH --ntasks-per-node=8  # ranks on each node
#SBATCH --gpus-per-node=8  # GPUs of each node, visible to its ranks together
#SBATCH --cpus-per-task=1  # CPUs for each rank
#SBATCH --exclusive  # whole nodes, also where the partition shares them
#SBATCH --time=00:30:00  # walltime limit
#SBATCH --output=hpclaunch-%j.out  # stdout and stderr of the job
#SBATCH --open-mode=append  # each run writes on in the same log: Slurm, too, may requeue the job

# Written by hpclaunch 0.1.0 for gcp-a3-high: Google Cloud, Slurm of Cluster Toolkit on A3 High
# (a3-highgpu-8g, 8 H100, GPUDirect-TCPX), pyxis, facts read 2026-11-20 to 2026-11-24.
# 4 nodes x 8 ranks = 32 ranks.
# Framework: torch; named in the request.
# No binding is planned: the NUMA nodes are not described, or --binding off.

set -eo pipefail
export HPCLAUNCH_JOB_ID="$SLURM_JOB_ID"
export HPCLAUNCH_JOB_FOLDER="$SLURM_SUBMIT_DIR/hpclaunch-$SLURM_JOB_ID"  # for what this job writes
export HPCLAUNCH_FILES=$HPCLAUNCH_JOB_FOLDER/files
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
rank_end='exec -- "$@"'  # a rank becomes the program; job_start.sh puts the proof of its binding before that
[ ! -r "$HPCLAUNCH_FILES/job_start.sh" ] || . "$HPCLAUNCH_FILES/job_start.sh"
[ "${hpclaunch_kept-}" ] || echo "hpclaunch: no proof, no status: --dry-run --save DIR writes the files" >&2

HPCLAUNCH_BINDS+=",/var/tmp:/var/tmp"  # in the container: MPI and fabric of the site
# and folders that are there; where a name is a link, under both names
for folder in "/var/lib/tcpx/lib64" "/run/tcpx-$SLURM_JOB_ID" "$HPCLAUNCH_JOB_FOLDER" "$HPCLAUNCH_FILES" \
  "$PWD"; do
  real=$(readlink -e -- "$folder") && [ "$real" != / ] || continue
  case $folder$real in *[,:]*) echo "hpclaunch: a comma or colon keeps $folder out" >&2; continue ;; esac
  HPCLAUNCH_BINDS+=,$real:$real$([ "$real" = "$folder" ] || echo ",$real:$folder")
done
export HPCLAUNCH_BINDS=${HPCLAUNCH_BINDS#,}
export SRUN_CPUS_PER_TASK=1  # srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch
export NCCL_NET=GPUDirectTCPX_v7  # fail rather than fall back to TCP without the plugin [1]
export NCCL_SOCKET_IFNAME=enp0s12  # the interface of the CPUs [1]
export NCCL_GPUDIRECTTCPX_CTRL_DEV=enp0s12  # the same, for the plugin [1]
export NCCL_GPUDIRECTTCPX_SOCKET_IFNAME=enp6s0,enp12s0,enp134s0,enp140s0  # the four interfaces of GPUs [1]
export NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX="/run/tcpx-$SLURM_JOB_ID"  # sockets of the receive service [2]
export NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS=500000  # as in Google's script [1]
# CPUs that send, near each interface [1]
export NCCL_GPUDIRECTTCPX_TX_BINDINGS="enp6s0:8-21,112-125;enp12s0:8-21,112-125;enp134s0:60-73,164-177;enp140s0:60-73,164-177"
# CPUs that receive, near each interface [1]
export NCCL_GPUDIRECTTCPX_RX_BINDINGS="enp6s0:22-35,126-139;enp12s0:22-35,126-139;enp134s0:74-87,178-191;enp140s0:74-87,178-191"
export NCCL_CROSS_NIC=0  # as in Google's script [1]
export NCCL_ALGO=Ring  # as in Google's script [1]
export NCCL_PROTO=Simple  # as in Google's script [1]
export NCCL_NSOCKS_PERTHREAD=4  # as in Google's script [1]
export NCCL_SOCKET_NTHREADS=1  # as in Google's script [1]
export NCCL_DYNAMIC_CHUNK_SIZE=524288  # as in Google's script [1]
export NCCL_P2P_NET_CHUNKSIZE=524288  # as in Google's script [1]
export NCCL_P2P_PCI_CHUNKSIZE=524288  # as in Google's script [1]
export NCCL_P2P_NVL_CHUNKSIZE=1048576  # as in Google's script [1]
export NCCL_BUFFSIZE=4194304  # as in Google's script [1]
export NCCL_NET_GDR_LEVEL=PIX  # as in Google's script [1]
export NCCL_P2P_PXN_LEVEL=0  # as in Google's script [1]
# where the prolog puts the plugin [2]
export LD_LIBRARY_PATH="/var/lib/tcpx/lib64:/usr/local/nvidia/lib64:$LD_LIBRARY_PATH"
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")  # rendezvous: the job's first node
export MASTER_ADDR MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))  # this job's port (10000-19999)
export OMP_NUM_THREADS=1  # threads for each rank: --cpus-per-task
${hpclaunch_startup-:}  # Python tells hpclaunch stacks where it stands; --no-stacks leaves it out

# Each rank is a shell with these lines.
IFS= read -r -d '' rank_start <<'HPCLAUNCH_RANK' || :
export RANK="${SLURM_PROCID:?srun gave no rank}" LOCAL_RANK="${SLURM_LOCALID:?srun gave no rank}"  # the rank
export WORLD_SIZE=32 LOCAL_WORLD_SIZE=8 GROUP_RANK=$((RANK / 8))  # and the sizes, for torch.distributed
HPCLAUNCH_RANK

srun --kill-on-bad-exit=1 --cpu-bind=cores --container-image="nvcr.io#nvidia/pytorch:25.06-py3" \
  --container-mounts="${HPCLAUNCH_BINDS#,}" --container-workdir="$PWD" --container-env=LD_LIBRARY_PATH \
  bash -c "$rank_start$rank_end" rank \
  python train.py

# Sources:
# [1] https://github.com/GoogleCloudPlatform/cluster-toolkit/blob/main/examples/machine-learning/a3-highgpu-8g/nccl-tests/run-nccl-tests.sh, read 2026-11-24
# [2] https://github.com/GoogleCloudPlatform/cluster-toolkit/tree/main/examples/machine-learning/a3-highgpu-8g, read 2026-11-24
