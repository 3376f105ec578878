#!/bin/bash
#BSUB -n 1
#BSUB -W 1:00
#BSUB -R "rusage[mem=1024MB]"
#BSUB -M 1GB
python train.py
# site: unknown
