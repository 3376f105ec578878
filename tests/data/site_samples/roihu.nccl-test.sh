#!/bin/bash
#SBATCH --account=project_2000123
#SBATCH --partition=gputest
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --gres=gpu:gh200:4
#SBATCH --time=00:15:00
module purge
srun apptainer run --nv container.sif all_reduce_perf_mpi -b 8 -e 128M -f 2 -g 1
# A form of CSC's examples of containers.
