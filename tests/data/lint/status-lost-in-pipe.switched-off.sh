#!/bin/bash
set -o pipefail
set +o pipefail
mpirun -np 4 ./app | tee app.log
# site: unknown
# expect: 4 status-lost-in-pipe
