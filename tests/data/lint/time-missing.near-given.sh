#!/bin/bash
#SBATCH -N1 -t 10
srun ./app
# site: unknown
