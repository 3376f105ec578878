#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=32
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
python src/lightning_fit.py --config four.yaml
# site: unknown
# expect: 6 one-process-for-tasks
