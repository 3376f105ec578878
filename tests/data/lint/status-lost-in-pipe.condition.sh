#!/bin/bash
if srun python train.py 2>&1 | tee train.log; then
  echo Success
fi
# site: unknown
# expect: 2 status-lost-in-pipe
