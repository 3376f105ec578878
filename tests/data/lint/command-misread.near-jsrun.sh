#!/bin/bash
#BSUB -W 1:00
#BSUB -nnodes 4
jsrun -n 24 -a 1 -c 7 -g 1 -b packed:7 ./app
jsrun -n2 -a 21 -c21 ./app
jsrun --bind rs -c 7 ./app
jsrun -n 4 -c 1 ./app
# site: unknown
