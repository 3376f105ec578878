#!/bin/bash
mpiexec -n 4 ./app &> /dev/null
# site: unknown
# expect: 2 stderr-discarded
