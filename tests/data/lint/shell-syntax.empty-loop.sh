#!/bin/bash
#SBATCH -N 1 -n 1 --time=10
for i in 1 2; do
#  ./app "$i"

done
# site: unknown
# expect: 6 shell-syntax
