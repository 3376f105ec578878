#!/bin/bash
srun -n 4 --cpu-bind=mask_cpu:${NOWHERE} ./app
# site: unknown
# expect: 2 mask-undefined-variable
