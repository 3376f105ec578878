#!/bin/bash
#SBATCH --output=/no-such-cluster/project/%j.out
srun ./app
# site: slurm-22.05.yaml
