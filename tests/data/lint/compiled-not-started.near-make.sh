#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
make search1
gcc search2.c -o search2
srun ./search1
# site: unknown
