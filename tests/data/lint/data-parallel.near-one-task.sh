#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun python data_parallel.py
# site: unknown
