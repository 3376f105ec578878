#!/bin/bash
MASTER_ADDR=$(hostname -i)
srun torchrun --rdzv_endpoint="$MASTER_ADDR:12345" train.py
# site: unknown
# expect: 3 master-port-fixed
