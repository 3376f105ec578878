#!/bin/bash
#SBATCH -t 2-
srun --time=1- ./app
# site: unknown
