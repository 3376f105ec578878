#!/bin/bash -l
#SBATCH -A naiss2025-1-23
#SBATCH -p gpu
#SBATCH -t 01:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=64
ml PDC
ml singularity/4.2.0-cpeGNU-24.11
srun singularity exec --rocm -B /cfs/klemming "$PDC_SHUB/pytorch" python3 train.py
# A form of PDC's page on PyTorch, with the folder of its images.
