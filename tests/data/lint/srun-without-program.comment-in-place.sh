#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
mpirun -np 4 ##### ./model > out.txt
# site: unknown
# expect: 4 srun-without-program
