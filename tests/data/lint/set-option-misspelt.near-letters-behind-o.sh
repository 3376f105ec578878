#!/bin/bash
#SBATCH --nodes=1 --time=10
set -eox pipefail
srun ./app
# site: unknown
