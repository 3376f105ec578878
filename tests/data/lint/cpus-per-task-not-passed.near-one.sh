#!/bin/bash
#SBATCH --cpus-per-task=1
srun ./app
# site: slurm-22.05.yaml
