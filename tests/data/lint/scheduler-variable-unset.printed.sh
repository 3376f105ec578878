#!/bin/bash
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
echo "GPUs per task: $SLURM_GPUS_PER_TASK"
srun ./app
# site: unknown
# expect: 5 scheduler-variable-unset
