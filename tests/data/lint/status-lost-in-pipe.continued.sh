#!/bin/bash
time srun \
  --label \
  python train.py \
  | tee train.log
# site: unknown
# expect: 2 status-lost-in-pipe
