#!/bin/bash
MASTER_PORT=50000 srun python train.py
# site: unknown
# expect: 2 master-port-ephemeral
