#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=small
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
srun ./app
# site: lumi-g
