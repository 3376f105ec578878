#!/bin/bash
#BSUB -n 8
#BSUB -W 2:00
#BSUB -R "span[ptile=4] rusage[mem=4000]"
#BSUB -R "span[hosts=-1]"
#BSUB -J ###NAME###
#BSUB -o ###NAME###.out
./app
# site: unknown
# expect: 6 placeholder
