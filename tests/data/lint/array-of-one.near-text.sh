#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
nodes=$(scontrol show hostnames)
all=($nodes)
more=("${all[@]}")
srun ./app ${more[0]}
# site: unknown
