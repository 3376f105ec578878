#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
PORT=29501
torchrun --nproc_per_node=4 --rdzv_endpoint=$HOSTNAME:$PORT train.py
# site: unknown
# expect: 4 master-port-fixed
