#!/bin/bash
#SBATCH --time=01:00:00
module load GCC/7.4.0
if [ -f in.csv ]; then
    ./prepare in.csv
fi
module load GCC/9.2.0
python train.py
# site: unknown
