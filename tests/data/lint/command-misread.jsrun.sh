#!/bin/bash
#BSUB -W 1:00
#BSUB -nnodes 4
jsrun -n 24 -a 1 -c 7 -g 1 ./app
jsrun -n4 -c21 ./app
# site: unknown
# expect: 4 command-misread
# expect: 5 command-misread
