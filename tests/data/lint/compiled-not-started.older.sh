#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
gcc -fopenmp -O2 search2.c -o search2 -lm
srun ./search1
# site: unknown
# expect: 5 compiled-not-started
