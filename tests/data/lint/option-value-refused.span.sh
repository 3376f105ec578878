#!/bin/bash
#BSUB -W 1:00
#BSUB -R "rusage[mem=4G] span[host=1]"
./app
# site: unknown
# expect: 3 option-value-refused
