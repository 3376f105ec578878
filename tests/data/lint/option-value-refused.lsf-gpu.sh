#!/bin/bash
#BSUB -W 10:00
#BSUB -gpu "nums=1"
#BSUB -gpu num=1,mode=shared
#BSUB -n four
./app
# site: unknown
# expect: 3 option-value-refused
# expect: 4 option-value-refused
# expect: 5 option-value-refused
