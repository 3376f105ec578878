#!/bin/bash
srun --ntasks-per-node=4 --cpu-bind=map_cpu:1,9,17 ./app
# site: unknown
# expect: 2 bind-list-count
