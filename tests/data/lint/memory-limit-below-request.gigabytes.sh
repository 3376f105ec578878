#!/bin/bash
#BSUB -n 1
#BSUB -W 1:00
#BSUB -R "rusage[mem=40GB]"
#BSUB -M 3GB
python train.py
# site: unknown
# expect: 5 memory-limit-below-request
