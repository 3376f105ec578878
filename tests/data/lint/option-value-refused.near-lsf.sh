#!/bin/bash
#BSUB -n 4
#BSUB -W 2:00
#BSUB -R "span[hosts=1] rusage[mem=4000]"
#BSUB -R "select[defined(big)] affinity[core(1)]"
#BSUB -J "a[1-10:2,12]%4"
./app $LSB_JOBINDEX
# site: unknown
