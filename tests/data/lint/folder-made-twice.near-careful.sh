#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
mkdir before
set -e
mkdir -p logs
mkdir "run-$SLURM_JOB_ID"
mkdir out || true
[ -d data ] || mkdir data
if [ ! -d cache ]; then mkdir cache; fi
rm -rf tmp
mkdir tmp
git clone https://example.org/app.git
cd app
mkdir build
./app
# site: unknown
