#!/bin/bash
srun -n 2 --cpu-bind=mask_cpu:0xf,0xf0 ./app
# site: unknown
