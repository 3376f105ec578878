#!/bin/bash
srun -n 3 --cpu-bind=mask_cpu:0xfe,0xfe,0xfe00 ./app
# site: unknown
# expect: 2 bind-shared-cores
