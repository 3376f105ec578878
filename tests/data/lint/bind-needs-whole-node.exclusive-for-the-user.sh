#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=small-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=00:30:00
#SBATCH --exclusive=user
srun --cpu-bind=map_cpu:49,57,17,25 ./app
# site: lumi-g
# expect: 9 bind-needs-whole-node
