#!/bin/bash
#BSUB -W 1:00
#BSUB -nnodes 1
jsrun -n1 ./app
# site: summit
# expect: - directive-missing
