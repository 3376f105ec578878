#!/bin/bash
#SBATCH --array=[1-100%10]
#SBATCH --time=01:00:00
DIR=/data NAME=a
srun -n @NTASKS@ ./app
srun -N NODES_PLACEHOLDER -n _NTASKS_ ./app
mpirun singularity exec image.sif tool -c $DIR/$NAME.conf
# site: unknown
