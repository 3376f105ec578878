#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
./prepare | tee prepare.log
./train
# site: unknown
