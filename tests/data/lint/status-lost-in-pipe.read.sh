#!/bin/bash
srun python train.py | tee train.log
if [ $? -eq 0 ]; then echo Success; fi
# site: unknown
# expect: 2 status-lost-in-pipe
