#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
ml Python/3.11
ml --force purge
Rscript fit.R
# site: unknown
# expect: 5 modules-purged
