#!/bin/bash
#$ -cwd
#$ -pe mpi 20
./app
# site: unknown
# expect: - time-missing
