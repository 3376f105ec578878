#!/bin/bash
#SBATCH --nodelist=gpu[01-02,07]
#SBATCH --time=01:00:00
srun python train.py
# site: unknown
