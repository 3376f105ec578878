#!/bin/bash
#SBATCH --nodes=1 --time=10
ARGS="
  --nnodes=1 \ 
  --nproc=4 \
  --x"
CMD="torchrun $ARGS train.py"
export MORE="--a \ 
  --b"
srun $CMD $MORE
# site: unknown
# expect: 4 continuation-blank
# expect: 8 continuation-blank
