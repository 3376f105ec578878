#!/bin/bash
#SBATCH --account=gpu_team
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
srun ./app
# site: lumi-g
# expect: 2 account-pattern
