#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=40
#SBATCH --time=01:00:00
iqtree2 -p all.nex -nt 40
# site: unknown
