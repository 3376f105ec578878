#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:4
#SBATCH --time=01:00:00
torchrun --nproc_per_node=4 -m pkg.train --config conf.yaml
# site: unknown
