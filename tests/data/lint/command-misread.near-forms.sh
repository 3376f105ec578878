#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export MASTER_ADDR=$SLURM_JOB_NODELIST
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
KEY=abc==
for f in 1..10.txt; do ./prepare "$f"; done
NAMES=("a, b" "c, d")
DATA=~/data
sbatch --nodes=2 next.sh --epochs 3
srun --ntasks=1 python train.py --partition x
mpirun -np 4 ./app -np 8
mpirun $OPTIONS -np 4 ./app
accelerate launch --num_processes 4 train.py
srun ./app
# site: unknown
# expect: 13 variable-undefined
