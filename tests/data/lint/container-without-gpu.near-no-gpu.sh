#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
apptainer exec train.sif python evaluate.py
# site: unknown
