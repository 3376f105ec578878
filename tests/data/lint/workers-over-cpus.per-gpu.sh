#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=4 --gpus-per-node=4
#SBATCH --time=02:00:00
#SBATCH --cpus-per-gpu=2
srun python train.py --data.num-workers=3
# site: unknown
# expect: 5 workers-over-cpus
