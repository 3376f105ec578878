#!/bin/bash
LIST=
srun -n 2 --cpu-bind=mask_cpu:$LIST ./app
# site: unknown
# expect: 3 bind-list-empty
