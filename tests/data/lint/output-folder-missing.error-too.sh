#!/bin/bash
#SBATCH -e errors/%j.err
srun ./app
# site: slurm-22.05.yaml
# expect: 2 output-folder-missing
