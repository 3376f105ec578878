#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
srun bash -c "export MASTER_PORT=\$((20000 + RANDOM % 100))
  python train.py"
# site: unknown
# expect: 7 rendezvous-own-host
