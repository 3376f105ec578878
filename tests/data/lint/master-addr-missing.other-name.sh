#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
export master_ip=$(hostname -i)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
srun python train.py
# site: unknown
# expect: 5 master-addr-missing
