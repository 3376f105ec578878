#!/bin/bash
#PBS -V
#PBS -l walltime=10:00
LOG=
./app > $LOG
# site: unknown
# expect: 5 redirect-empty
