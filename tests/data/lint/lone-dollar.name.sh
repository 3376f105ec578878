#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
LIST=hosts.$
srun ./app $LIST
# site: unknown
# expect: 4 lone-dollar
