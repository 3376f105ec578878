#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
IFS= read -r NAME < list.txt
LC_ALL= ls
CUDA_VISIBLE_DEVICES= 7z a data.7z data
SEED=42
srun ./app
# site: unknown
