#!/bin/bash
read -r MASKS < masks.txt
srun -n 4 --cpu-bind=mask_cpu:$MASKS ./app
# site: unknown
