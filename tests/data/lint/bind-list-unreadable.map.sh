#!/bin/bash
srun -n 2 --cpu-bind=map_cpu:1,two ./app
# site: unknown
# expect: 2 bind-list-unreadable
