#!/bin/bash
#BSUB -n 1
#BSUB -W 10
#BSUB -o out.%J
./app > "result-%J.txt" 2>&1
# site: unknown
# expect: 5 pattern-not-replaced
