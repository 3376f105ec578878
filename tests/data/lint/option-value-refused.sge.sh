#!/bin/sh
#$ -wd $PWD
#$ -o $(pwd)/log.txt
#$ -pe 1
#$ -v
./app
# site: unknown
# expect: 2 option-value-refused
# expect: 3 option-value-refused
# expect: 4 option-value-refused
# expect: 5 option-value-refused
