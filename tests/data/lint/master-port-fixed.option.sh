#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
torchrun --nproc_per_node=4 --master_port=29501 train.py
# site: unknown
# expect: 4 master-port-fixed
