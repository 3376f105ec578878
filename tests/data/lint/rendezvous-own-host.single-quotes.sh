#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
srun bash -c 'MASTER_ADDR=$(hostname) python train.py'
# site: unknown
# expect: 7 rendezvous-own-host
