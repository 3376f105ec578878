#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
export OMP_PLACES='{0:4},{4:4}'
export KMP_AFFINITY='explicit,proclist=[0,2,4]'
export GOMP_CPU_AFFINITY=0-3
srun ./a
# site: unknown
