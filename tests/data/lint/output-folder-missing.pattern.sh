#!/bin/bash
#SBATCH -o runs/%j/out.txt
srun ./app
# site: slurm-22.05.yaml
# expect: 2 output-folder-missing
