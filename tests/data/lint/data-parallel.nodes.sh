#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun python data_parallel.py
# site: unknown
# expect: 5 data-parallel
