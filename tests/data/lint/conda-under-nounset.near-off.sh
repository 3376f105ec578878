#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -euo pipefail
source ~/miniforge3/etc/profile.d/conda.sh
set +u
conda activate gdal
set -u
./app
# site: unknown
