#!/bin/bash
srun python train.py | tee train.log
exit "${PIPESTATUS[0]}"
# site: unknown
