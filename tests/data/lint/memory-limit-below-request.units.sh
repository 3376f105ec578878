#!/bin/bash
#BSUB -n 1
#BSUB -W 1:00
#BSUB -M 900MB
#BSUB -R "span[hosts=1] rusage[mem=1GB]"
python train.py
# site: unknown
# expect: 4 memory-limit-below-request
