#!/bin/bash
#SBATCH --nodes=1
#SBATCH --output=%x-%j.out
#SBATCH --time=01:00:00
path_to_data=/scratch/data
srun python train.py --path_to_model $path_to_data --token "<PAD>" --your-flag model.path_to_x=3
dir=$(mktemp -d /tmp/run.XXXXXX)
srun ./app $dir
# site: unknown
