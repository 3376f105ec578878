#!/bin/bash
srun -n 2 --cpu-bind=mask_cpu:0x1,0x2 ./app
# site: unknown
