#!/bin/bash
module load CUDA/12.1.1
eb --robot Horovod-0.28.1-foss-2022a-CUDA-11.7.0.eb
# site: unknown
# expect: 3 module-cuda-mismatch
