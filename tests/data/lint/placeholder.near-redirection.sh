#!/bin/bash
#SBATCH --nodes=1
#SBATCH --job-name=index
#SBATCH --time=01:00:00
srun ./app <input.txt >output.txt
sort <a >b
# site: unknown
