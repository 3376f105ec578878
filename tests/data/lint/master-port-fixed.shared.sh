#!/bin/bash
export MASTER_PORT=29500
srun python train.py
# site: unknown
# expect: 2 master-port-fixed
