#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --time=01:00:00
srun lmp -sf omp -in in.melt
# site: unknown
# expect: 2 one-cpu-per-gpu-rank
