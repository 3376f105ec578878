#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --time=01:00:00
srun singularity exec $SCRATCH/torch.sif python train.py
# site: lumi-g
# expect: 9 variable-undefined
