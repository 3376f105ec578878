#!/bin/bash
#SBATCH --ntasks=40
#SBATCH --time=01:00:00
app -t 40 input
# site: unknown
