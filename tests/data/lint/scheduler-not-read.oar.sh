#!/bin/bash
#OAR -l /nodes=2,walltime=1:00:00
mpirun ./app
# site: unknown
# expect: 2 scheduler-not-read
