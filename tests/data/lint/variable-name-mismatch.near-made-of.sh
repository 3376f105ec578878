#!/bin/bash
CONTAINER_PATH=$CONTAINER/torch.sif
srun singularity exec $CONTAINER python train.py
# site: unknown
# expect: 2 variable-undefined
