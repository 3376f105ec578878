#!/bin/bash
OPTIONS="--cpu-bind=map_cpu: 1,2"
srun $OPTIONS ./app
# site: unknown
# expect: 2 bind-list-blanks
