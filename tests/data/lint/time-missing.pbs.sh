#!/bin/bash
#PBS -l select=1
mpiexec ./app
# site: unknown
# expect: - time-missing
