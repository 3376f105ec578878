#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
for n in 1 2; do
  bash -c './app --case $n'
done
# site: unknown
# expect: 7 variable-not-exported
