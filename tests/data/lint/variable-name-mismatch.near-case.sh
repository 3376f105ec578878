#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
master_addr=$(hostname)
export MASTER_ADDR=$master_addr
DATA=$data
export DATA=$DATA
path=/opt/bin
export PATH=$PATH
srun python train.py --addr $master_addr $DATA $path
# site: unknown
# expect: 6 variable-undefined
