#!/bin/bash
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --time=1-00:00:00
#SBATCH -p gpu
#SBATCH -A pawsey0001-gpu
#SBATCH --gpus-per-node=8
module load spack/0.23.1
spack install -j64
# A form of Pawsey's build jobs: no step is started, and the script has the whole node.
