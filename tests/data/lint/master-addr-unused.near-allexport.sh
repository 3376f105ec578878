#!/bin/bash
set -a
MASTER_ADDR=$(hostname -i)
srun python train.py
# site: unknown
