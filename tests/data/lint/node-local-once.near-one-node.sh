#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
mkdir -p /tmp/cache
srun ./app
# site: unknown
