#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load gcc/12.2 gromacs/2023
module purge
srun gmx_mpi mdrun -deffnm md
# site: unknown
# expect: 5 modules-purged
