#!/bin/bash
#SBATCH -N 1
#SBATCH -n 1
#SBATCH --array=0-31
#SBATCH --time=01:00:00
python stability.py --nthreads 32 --thread_id $SLURM_ARRAY_TASK_ID
nextflow run main.nf -profile slurm --threads 16
# site: unknown
