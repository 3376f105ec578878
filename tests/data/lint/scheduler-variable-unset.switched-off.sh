#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
##SBATCH --cpus-per-task=8
# one task, its threads below
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
./app --cpus-per-task-limit 3  # --cpus-per-task-limit is the program's
# site: unknown
# expect: 6 scheduler-variable-unset
