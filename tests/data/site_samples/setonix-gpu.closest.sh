#!/bin/bash --login
#SBATCH --account=pawsey0001-gpu
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus-per-node=3
#SBATCH --time=00:05:00
module load PrgEnv-cray
module load rocm craype-accel-amd-gfx90a
export MPICH_GPU_SUPPORT_ENABLED=1 OMP_NUM_THREADS=1
srun -l -u -N 1 -n 3 -c 8 --gpus-per-node=3 --gpus-per-task=1 --gpu-bind=closest "$MYSCRATCH/hello"
# A form of Pawsey's course (running-jobs/examples_GPU).
