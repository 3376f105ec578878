#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
DATA="${DATA:-/path/to/data}"
srun ./app "$DATA"
# site: unknown
# expect: 4 placeholder
