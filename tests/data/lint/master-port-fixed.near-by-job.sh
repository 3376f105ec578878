#!/bin/bash
export MASTER_PORT=$(( 20000 + RANDOM % 1000 ))
srun python train.py
# site: unknown
