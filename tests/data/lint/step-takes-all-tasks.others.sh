#!/bin/bash
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
srun -N $((SLURM_NNODES - 1)) --ntasks-per-node 1 -x node1 ./worker
# site: unknown
# expect: 5 step-takes-all-tasks
