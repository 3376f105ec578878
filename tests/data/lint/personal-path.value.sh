#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
ENV=/global/homes/j/jdoe/.local/env
srun ./app $ENV
# site: unknown
# expect: 4 personal-path
