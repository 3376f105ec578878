#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
srun torchrun --nnodes 2 --master_addr 127.0.0.1 train.py
# site: unknown
# expect: 5 rendezvous-localhost
