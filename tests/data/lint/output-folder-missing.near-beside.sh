#!/bin/bash
#SBATCH --output=%x-%j.out
#SBATCH --error=./%j.err
srun ./app
# site: slurm-22.05.yaml
