#!/bin/bash -l
#SBATCH -A naiss2025-1-23
#SBATCH -p main
#SBATCH -t 10:00:00
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=16
#SBATCH --cpus-per-task=8
export OMP_NUM_THREADS=8
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
srun --hint=nomultithread ./model > output.txt
# A form of PDC's job scripts for its CPU nodes.
