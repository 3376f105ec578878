#!/bin/bash
#SBATCH --ntasks=#####_np
#SBATCH --time=01:00:00
mpirun -np 4 #####_folder/model > out.txt
# site: unknown
# expect: 2 placeholder
