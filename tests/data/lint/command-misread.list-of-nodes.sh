#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4
export OMP_NUM_THREADS=$SLURM_JOB_CPUS_PER_NODE
mpirun --bind-to core -np $SLURM_TASKS_PER_NODE ./app
# site: unknown
# expect: 3 command-misread
# expect: 4 command-misread
