#!/bin/bash
#SBATCH -N 1 -n 1 --time=10
./app --out results/"$1"
cd results
md5sum results/"$1" > sum.txt
# site: unknown
# expect: 5 folder-entered-twice
