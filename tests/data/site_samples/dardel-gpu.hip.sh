#!/bin/bash -l
#SBATCH -A naiss2025-1-23
#SBATCH -J hip
#SBATCH -p gpu
#SBATCH -t 01:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
ml rocm/6.3.3
ml craype-accel-amd-gfx90a
srun ./hello > output.txt
# Example 6 of PDC's job scripts, in other words: GPUs come with the whole node.
