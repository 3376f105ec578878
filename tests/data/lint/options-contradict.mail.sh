#!/bin/bash
#BSUB -o a.%J
#BSUB -u me@example.org
#BSUB -W 1:00
./app
# site: unknown
# expect: 3 options-contradict
