#!/bin/bash
#SBATCH --nodes=1 --time=10
N=4
X=/scratch/data
CODE=x
run() { eval "$1"; }
awk '$N' /tmp/x
sed -n '$N' /tmp/x
perl -ne '$X' /tmp/x
bash -c '$X'
srun bash -c '$X'
ssh node1 '$X'
envsubst '${X}' < /tmp/x
parallel '$X' ::: 1 2
find . -name x -exec sh -c '$X' \;
trap '$X' EXIT
python -c '$CODE'
Rscript -e '$CODE'
julia -e '$CODE'
jq '$X' /tmp/x
echo '$X'
grep '$X' /tmp/x
./app '$OTHER' '$X and more' "$X"
# site: unknown
