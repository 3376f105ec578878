#!/bin/bash
#SBATCH --cpus-per-task=8
srun ./app
# site: slurm-22.05.yaml
# expect: 3 cpus-per-task-not-passed
