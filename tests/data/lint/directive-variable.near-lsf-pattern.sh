#!/bin/bash
#BSUB -n 1 -J "a[1-4]"
#BSUB -o run.%J.%I.out
./app > $LSB_JOBID.log
# site: unknown
