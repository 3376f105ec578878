#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
NGPUS=8
export NNODES=2
srun ./app $NGPUS
# site: unknown
