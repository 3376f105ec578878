#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=dev-g
#SBATCH --nodes=64
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
#SBATCH --exclusive
srun ./app
# site: lumi-g
# expect: 4 nodes-over-limit
