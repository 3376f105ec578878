#!/bin/bash
# Comments behind a directive.
#SBATCH -N 2 #NODES#
#SBATCH --exclusive  # the WALLTIME is next
#SBATCH -t 1:00:00 #WALLTIME
#SBATCH -J run#1#2
srun ./app
# site: unknown
