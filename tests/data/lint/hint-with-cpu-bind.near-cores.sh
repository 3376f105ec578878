#!/bin/bash
#SBATCH --hint=nomultithread
#SBATCH --time=01:00:00
srun --cpu-bind=cores ./app
srun --cpu-bind=verbose ./app
# site: unknown
