#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=dev-g
#SBATCH --nodes=2
#SBATCH --time=01:00:00
#PBS -l select=2
srun ./app
# site: lumi-g
