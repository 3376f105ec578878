#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
nvidia-smi -l 30 > gpu.log &
MONITOR=$!
srun python train.py
kill $MONITOR
# site: unknown
# expect: 6 status-lost
