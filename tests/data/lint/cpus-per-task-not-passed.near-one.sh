#!/bin/bash
#SBATCH --cpus-per-task=1
srun ./app
# site: unknown
