#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
srun bash <<'RANK'
export MASTER_ADDR=`hostname -s`
python train.py
RANK
# site: unknown
# expect: 8 rendezvous-own-host
