#!/bin/bash
. ./masks.sh
srun --cpu-bind=mask_cpu:$MASKS ./app
# site: unknown
