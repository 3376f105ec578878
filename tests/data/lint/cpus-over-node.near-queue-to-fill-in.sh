#!/bin/bash
#SBATCH -A naiss2025-1-23
#SBATCH -p <partition>
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=128
#SBATCH --time=01:00:00
srun ./flow
# site: dardel-gpu
# expect: 3 placeholder
