#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
export OMP_NUM_THREADS=${SLURM_NTASKS_PER_NODE}}
srun -c ${SLURM_NTASKS_PER_NODE}} ./a
# site: unknown
# expect: 3 command-misread
# expect: 4 command-misread
