#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=128
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
srun ./app
# site: lumi-g
# expect: 5 cpus-over-node
