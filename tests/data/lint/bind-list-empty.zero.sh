#!/bin/bash
srun -n 2 --cpu-bind=mask_cpu:0x0,0xfe ./app
# site: unknown
# expect: 2 bind-list-empty
