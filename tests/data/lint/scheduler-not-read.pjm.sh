#!/bin/sh
#PJM -L "node=2"
#PJM -L "elapse=1:00:00"
mpiexec ./app
# site: unknown
# expect: 2 scheduler-not-read
