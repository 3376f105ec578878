#!/bin/bash
#BSUB -o a.%j.out
#BSUB -eo a.%A_%a.err
#BSUB -W 1:00
./app
# site: unknown
# expect: 2 option-value-undocumented
# expect: 3 option-value-undocumented
