#!/bin/bash
#SBATCH --cpus-per-task=8
srun -c "$SLURM_CPUS_PER_TASK" ./app
srun --cpus-per-task=8 ./app
# site: slurm-22.05.yaml
