#!/bin/bash
#SBATCH --ntasks-per-n=8 --job=x
srun ./app
# site: unknown
