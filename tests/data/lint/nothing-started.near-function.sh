#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
cd run
./app
# site: unknown
