#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
trap 'rm -f lock; exit 0' EXIT
export https_proxy=https://proxy.example.org:3128
export MASTER_ADDR=node1 MASTER_TRIES=3
export MASTER_PORT=$RANDOM
export NCCL_IB_DISABLE=1
module load gcc
export LD_LIBRARY_PATH=/opt/foo/lib
srun ./a
# site: unknown
# expect: 3 command-misread
# expect: 4 command-misread
# expect: 6 command-misread
# expect: 7 command-misread
# expect: 9 command-misread
