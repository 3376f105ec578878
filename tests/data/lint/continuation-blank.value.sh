#!/bin/bash
#SBATCH --nodes=1 --time=10
ARGS="
  --nnodes=1 \ 
  --nproc=4 \
  --max_restarts=0"
export MORE="--a \ 
  --b"
CMD="torchrun $ARGS train.py $MORE"
srun $CMD
# site: unknown
# expect: 4 continuation-blank
# expect: 7 continuation-blank
