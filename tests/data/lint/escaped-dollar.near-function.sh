#!/bin/bash
#SBATCH --nodes=1 --time=10
X=/scratch/data
run() { eval "$1"; }
run '$X'
# site: unknown
