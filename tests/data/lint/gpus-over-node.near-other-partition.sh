#!/bin/bash
#SBATCH --account=ajs@a100
#SBATCH --partition=gpu_p5
#SBATCH --constraint=a100
#SBATCH --gres=gpu:8
#SBATCH --time=01:00:00
srun ./app
# site: jean-zay
# expect: 3 queue-unknown
