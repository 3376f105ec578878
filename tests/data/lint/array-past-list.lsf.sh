#!/bin/bash
#BSUB -W 1:00
#BSUB -J "sim[1-3]%2"
A=(x y z)
./app ${A[${LSB_JOBINDEX}]}
# site: unknown
# expect: 3 array-past-list
