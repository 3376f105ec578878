#!/bin/bash
#SBATCH --account=nn1234k
#SBATCH --partition=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=01:00:00
srun --mpi=pmix --cpu-bind=mask_cpu:0x1ffffffffffffffffff,0xfffffffffffffffffe000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000,0xffffffffffffffffff000000000000000000000000000000000000000000000000000000 ./app
# site: olivia
# expect: 9 bind-crosses-numa
