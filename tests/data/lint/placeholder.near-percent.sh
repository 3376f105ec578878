#!/bin/bash
#SBATCH --output=%x.%j.out
#SBATCH --array=1-9%3
srun ./app "${A%.*}" "<%"
# site: unknown
