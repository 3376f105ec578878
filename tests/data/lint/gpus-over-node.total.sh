#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus=16
#SBATCH --time=00:30:00
srun ./app
# site: lumi-g
# expect: 6 gpus-over-node
