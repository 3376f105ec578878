#!/bin/bash
#SBATCH --time=01:00:00
module load GCC/7.4.0
cd case
echo "loaded"
module load Python/3.8.2-GCCcore-9.3.0
python train.py
# site: unknown
# expect: 6 module-toolchain-mismatch
