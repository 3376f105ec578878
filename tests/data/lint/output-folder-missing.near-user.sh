#!/bin/bash
#SBATCH --output=/scratch/%u/logs/job.out
#SBATCH --time=01:00:00
srun ./app
# site: slurm-22.05.yaml
