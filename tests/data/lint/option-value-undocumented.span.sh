#!/bin/bash
#BSUB -n 8
#BSUB -W 2:00
#BSUB -R "span[hosts=2]"
./app
# site: unknown
# expect: 4 option-value-undocumented
