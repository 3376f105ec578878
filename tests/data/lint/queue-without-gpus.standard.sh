#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
srun ./app
# site: lumi-g
# expect: 3 queue-without-gpus
