#!/bin/bash
#SBATCH -c 8
srun --cpu-bind=cores ./app
export SRUN_CPUS_PER_TASK=8
# site: slurm-22.05.yaml
# expect: 3 cpus-per-task-not-passed
