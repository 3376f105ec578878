#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
srun python tools/train_net.py --num-gpus 4 --num-machines 2 --dist-url "tcp://$HEAD:9000"
# site: unknown
# expect: 7 node-rank-constant
# expect: 7 variable-undefined
