#!/bin/bash
#SBATCH -N 1 -n 1 --time=10
./app --out results/x
(cd results && md5sum x)
./app results/x
cd results
./app data/x
cd ..
./app results/x
cd data
mkdir data
./app data/x
cd results; cd -
./app results/x
# site: unknown
