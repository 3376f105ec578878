#!/bin/bash
srun --export ALL,CUDA_VISIBLE_DEVICES=0,1,2,3,OMP_NUM_THREADS=8 ./app
# site: unknown
# expect: 2 export-comma-value
