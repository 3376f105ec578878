#!/bin/bash
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=7
#SBATCH --time=01:00:00
module load lumi-aif-singularity-bindings
srun singularity run torch.sif python train.py
# site: unknown
