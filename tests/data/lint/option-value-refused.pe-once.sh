#!/bin/bash
#$ -cwd
#$ -pe 4
./app
# site: unknown
# expect: 3 option-value-refused
