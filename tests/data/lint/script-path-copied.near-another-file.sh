#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
HERE=$(dirname "$1")
echo "usage: $0 FILE"
srun "$HERE/app"
# site: unknown
