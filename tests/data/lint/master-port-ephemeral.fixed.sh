#!/bin/bash
export MASTER_PORT=45678
srun python train.py
# site: unknown
# expect: 2 master-port-ephemeral
