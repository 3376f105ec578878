#!/bin/bash
#SBATCH --output=/scratch/%u/logs/job.out
#SBATCH --time=01:00:00
srun ./app
# site: unknown
