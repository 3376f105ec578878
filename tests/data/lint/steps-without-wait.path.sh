#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
Rscript fit.R > fit.log &
date
# site: unknown
# expect: 4 steps-without-wait
