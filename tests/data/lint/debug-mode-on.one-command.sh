#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
TORCH_DISTRIBUTED_DEBUG=DETAIL srun python train.py
# site: unknown
# expect: 4 debug-mode-on
