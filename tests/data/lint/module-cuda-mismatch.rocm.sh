#!/bin/bash
module load rocm/5.2.3
module load PyTorch/2.7.1-rocm-6.2.4-python-3.12
srun ./app
# site: unknown
# expect: 3 module-cuda-mismatch
