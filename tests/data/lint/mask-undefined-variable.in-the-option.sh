#!/bin/bash
srun -n 2 \
  --cpu-bind=map_cpu:1,${second_core} \
  ./app
# site: unknown
# expect: 3 mask-undefined-variable
