#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
mpirun -np 1 \
  apptainer run --nv \
    --bind /data \
    train.sif
    python train.py
# site: unknown
# expect: 8 continuation-missing
