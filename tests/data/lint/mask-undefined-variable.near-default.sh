#!/bin/bash
srun -n 4 --cpu-bind=mask_cpu:${MASKS:-0x1,0x2,0x4,0x8} ./app
# site: unknown
