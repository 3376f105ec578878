#!/bin/bash
#PBS -l nodes=2:ppn=8
#PBS -l walltime=1:00:00   # one hour
mpiexec ./app
# site: unknown
# expect: 3 directive-comment
