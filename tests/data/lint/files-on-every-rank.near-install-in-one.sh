#!/bin/bash
#SBATCH --ntasks=8
#SBATCH --time=01:00:00
srun --ntasks=1 pip install torch
pip install numpy
srun ./app
# site: unknown
