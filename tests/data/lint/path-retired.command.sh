#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
cd /global/cscratch1/sd/abc
srun ./app --data=/gpfs/alpine2/abc/data
ls /global/cscratch1/sd/abc/more
# site: unknown
# expect: 4 path-retired
# expect: 5 path-retired
# expect: 5 status-lost
