#!/bin/bash
#SBATCH --ntasks-per-node=1# number of processes
#SBATCH --time=01:00:00#an hour
#SBATCH --job-name="a # b" --comment='c#d' --output=e\#f.out
srun ./app
# site: unknown
