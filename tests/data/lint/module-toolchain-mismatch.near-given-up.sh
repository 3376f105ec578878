#!/bin/bash
#SBATCH --time=01:00:00
module load Python/3.8.2-GCCcore-9.3.0
module unload GCCcore
module load CMake/3.11.4-GCCcore-8.3.0
python train.py
# site: unknown
