#!/bin/bash
#BSUB -n 1
#BSUB -o run.$LSB_JOBID.out
#BSUB -eo $HOME/run.err
./app
# site: unknown
# expect: 3 directive-variable
# expect: 4 directive-variable
