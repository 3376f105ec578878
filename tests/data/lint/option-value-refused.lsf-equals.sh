#!/bin/bash
#BSUB -n 4
#BSUB -W 2:00
#BSUB -R "rusage=[mem=4000]"
./app
# site: unknown
# expect: 4 option-value-refused
