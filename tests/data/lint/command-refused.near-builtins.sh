#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun --export ALL,X=1 ./app
srun bash -c 'export X=1; ./app'
srun env X=1 ./app
module unload cuda
module -q load cuda
srun ./set_up
# site: unknown
