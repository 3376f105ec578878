#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
nvcc -o search2 search2.cu
srun ./search2
srun ./search1
# site: unknown
