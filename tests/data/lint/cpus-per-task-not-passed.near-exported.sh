#!/bin/bash
#SBATCH --cpus-per-task=8
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
srun ./app
# site: slurm-22.05.yaml
