#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
nvidia-smi -l 30 > gpu.csv &
./app &
wait $!
kill %1
# site: unknown
