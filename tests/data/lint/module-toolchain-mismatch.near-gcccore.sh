#!/bin/bash
module load OpenMPI/5.0.10-GCC-14.3.0 NCCL/2.30.4-GCCcore-14.3.0-CUDA-13.0.0
srun ./app
# site: unknown
