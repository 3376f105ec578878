#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
./train
sacct -j $SLURM_JOB_ID | tee usage.txt
# site: unknown
