#!/bin/bash
srun -n 2 --cpu-bind=mask_cpu:fe,FE00 ./app
# site: unknown
