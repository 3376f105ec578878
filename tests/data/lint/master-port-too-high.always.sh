#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_PORT=70000
srun python train.py
# site: unknown
# expect: 5 master-port-too-high
# expect: 5 master-port-fixed
