#!/bin/bash
#BSUB -J x
#BSUB -W 10:00
#BSUB -gpu "num=1:mode=exclusive_process:mps=yes,share"
#BSUB -gpu -
#BSUB -n 2,4
cd /scratch/p
python train.py
# site: unknown
