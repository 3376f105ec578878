#!/bin/bash
srun singularity exec image.sif \
  python -u old_callbacks.py --epochs 3
# site: unknown
# expect: 5 horovod-callback-arguments
