#!/bin/bash
module load CUDA/12.1.1
module load UCX-CUDA/1.14.1-GCCcore-12.3.0-CUDA-12.1.1
# site: unknown
