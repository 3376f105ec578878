#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-task=1 --cpus-per-task=8 --time=10
export SRUN_CPUS_PER_TASK=8
export JAX_PLATFORMS=cpu
srun python gpu_jax.py
# site: unknown
