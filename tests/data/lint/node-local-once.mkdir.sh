#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
mkdir -p /tmp/cache
srun ./app
# site: unknown
# expect: 4 node-local-once
