#!/bin/bash
#SBATCH --time=08:00:00
#SBATCH --mem=100
source ~/miniconda3/etc/profile.d/conda.sh
conda activate work
python scripts/make_shards.py --data=data
# site: unknown
# expect: 3 unit-missing
