#!/bin/bash
MASK=0xfe, 0xfe00
srun -n 2 --cpu-bind=mask_cpu:0x1,0x2 ./app
# site: unknown
# expect: 2 bind-list-blanks
