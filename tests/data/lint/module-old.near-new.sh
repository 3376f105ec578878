#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load LUMI/25.03 conda/2026-01-10 PyTorch/2.7.1-foss-2024a-CUDA-12.6.0
srun ./app
# site: unknown
