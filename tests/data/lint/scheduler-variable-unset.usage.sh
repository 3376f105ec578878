#!/bin/bash
#SBATCH --job-name=bench
#SBATCH --time=01:00:00
# Submit by: sbatch --nodes=2 --cpus-per-task=8 bench.sh
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
mpirun ./app
# site: unknown
# expect: 5 scheduler-variable-unset
