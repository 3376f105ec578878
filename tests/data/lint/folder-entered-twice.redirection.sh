#!/bin/bash
#SBATCH -N 1 -n 1 --time=10
./app > out/table.txt
cd out/
sort out/table.txt
# site: unknown
# expect: 5 folder-entered-twice
