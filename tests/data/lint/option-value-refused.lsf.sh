#!/bin/bash
#BSUB -n 4
#BSUB -W 2:00
#BSUB -R "span[hosts=2]"
#BSUB -R "rusage(mem=4000)"
#BSUB -J a[1:10]
./app $LSB_JOBINDEX
# site: unknown
# expect: 4 option-value-undocumented
# expect: 5 option-value-refused
# expect: 6 option-value-refused
