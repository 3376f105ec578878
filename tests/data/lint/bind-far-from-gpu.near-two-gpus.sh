#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --time=00:30:00
srun --cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000 ./app
# site: lumi-g
