#!/bin/bash
#SBATCH --time=1-12
srun ./app
# site: unknown
