#!/bin/bash -e
#SBATCH --nodes=1
#SBATCH --time=01:00:00
out=results
mkdir $out logs
./app
# site: unknown
# expect: 5 folder-made-twice
