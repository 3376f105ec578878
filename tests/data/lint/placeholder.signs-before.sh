#!/bin/bash
#SBATCH --ntasks=#####_np
#SBATCH --time=###walltime
mpirun -np 4 #####_folder/model > out.txt
# site: unknown
# expect: 2 placeholder
