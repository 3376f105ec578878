#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4
TASKS=$SLURM_TASKS_PER_NODE
mpirun -np ${SLURM_TASKS_PER_NODE%%(*} ./app -n $TASKS
# site: unknown
