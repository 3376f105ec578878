#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=8
#SBATCH --gres=gpu:1
#SBATCH --time=01:00:00
python reduce.py --executor dask
# site: unknown
