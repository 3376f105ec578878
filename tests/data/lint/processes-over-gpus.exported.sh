#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
NP=8
export NP
srun -c8 bash -c 'torchrun --standalone --nproc_per_node=$NP train.py'
srun -c8 bash -c 'N=6; torchrun --standalone --nproc_per_node=$N train.py'
# site: unknown
# expect: 8 processes-over-gpus
# expect: 9 processes-over-gpus
