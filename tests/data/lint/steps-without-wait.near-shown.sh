#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
nvidia-smi -l 5 > gpu.log &
echo started
cat list | sort > b &
./app
# site: unknown
