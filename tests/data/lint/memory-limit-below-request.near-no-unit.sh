#!/bin/bash
#BSUB -n 1
#BSUB -W 1:00
#BSUB -R "rusage[mem=4096]"
#BSUB -M 3GB
python train.py
# site: unknown
