#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
port=29500
export MASTER_PORT=$port
srun python train.py
# site: lumi-g
# expect: 9 master-port-fixed
