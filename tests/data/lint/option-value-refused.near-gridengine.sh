#!/bin/bash
#$ -N x
#$ -l h_rt=10:00:00
#$ -pe smp 4-8
#$ -pe mpi 16
#$ -N name.x
#$ -l h_vmem=4G,h_rt=3600
cd /scratch/p
python train.py
# site: unknown
