#!/bin/bash
ml CUDA/12.6.0 NCCL/2.12.12-GCCcore-11.3.0-CUDA-11.7.0
srun ./app
# site: unknown
# expect: 2 module-cuda-mismatch
