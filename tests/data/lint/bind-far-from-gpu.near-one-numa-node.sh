#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
srun --cpu-bind=map_cpu:49,57,17,25,1,9,41,33 ./app
# site: lumi-g
