#!/bin/bash
srun -n 2 --cpu-bind=verbose,map_cpu:1,2*1 ./app
# site: unknown
