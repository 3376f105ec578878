#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
export MASTER_ADDR=localhost
srun python train.py
# site: unknown
# expect: 4 rendezvous-localhost
