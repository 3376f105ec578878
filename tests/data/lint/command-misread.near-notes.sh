#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
trap 'rm -f lock' EXIT
export https_proxy=http://proxy.example.org:3128
export MASTER_ADDR=node1
export MASTER_PORT=$((10000 + RANDOM % 20000))
export NCCL_IB_DISABLE=0
module load gcc
export LD_LIBRARY_PATH=/opt/foo/lib:$LD_LIBRARY_PATH
A=1 B=2
export NAME=${A:-${B}}
srun ./a --json='{"a": ${B}}'
# site: unknown
