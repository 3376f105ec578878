#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
gcc search2.c -o search2
srun ./prepare1
# site: unknown
