#!/bin/bash
for seed in 1 2 3; do
  srun python train.py --seed "$seed"
done | tee train.log
# site: unknown
# expect: 3 status-lost-in-pipe
