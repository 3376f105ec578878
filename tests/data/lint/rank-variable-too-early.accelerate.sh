#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
srun accelerate launch --num_machines 2 --machine_rank $SLURM_PROCID train.py
# site: unknown
# expect: 5 rank-variable-too-early
