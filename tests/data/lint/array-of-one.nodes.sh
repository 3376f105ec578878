#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
nodes=( $(scontrol show hostnames) )
all=($nodes)
srun ./app ${all[0]}
# site: unknown
# expect: 5 array-of-one
