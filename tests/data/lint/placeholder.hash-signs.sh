#!/bin/bash
#SBATCH -N #NODES#                #number of nodes
#SBATCH --ntasks-per-node=#MPI_PER_NODE#
#SBATCH -t #WALLTIME#
srun ./app
# site: unknown
# expect: 2 placeholder
