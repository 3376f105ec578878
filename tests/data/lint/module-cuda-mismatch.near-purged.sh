#!/bin/bash
module load cuda/12.1
module purge
module load Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0
srun ./app
# site: unknown
# expect: 4 module-old
