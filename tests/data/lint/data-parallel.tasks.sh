#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
srun python -u data_parallel.py --epochs 3
# site: unknown
# expect: 5 data-parallel
