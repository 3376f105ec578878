#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=2 --qos=devel
#SBATCH --time=01:00:00 --account=a
python train.py --num_workers 8
# site: betzy
