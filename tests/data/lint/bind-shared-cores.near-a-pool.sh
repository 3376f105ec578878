#!/bin/bash
srun -n 2 --cpu-bind=mask_cpu:0xfe,0xfe ./app
# site: unknown
