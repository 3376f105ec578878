#!/bin/bash
module load cuda/12.1
module load NCCL/2.18.3-GCCcore-12.3.0-CUDA-12.1.1
srun ./app
# site: unknown
