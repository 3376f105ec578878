#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
python tools/train_net.py --config-file c.yaml --num-gpus 4
# site: unknown
