#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -eo pipefail
source ~/miniforge3/etc/profile.d/conda.sh
conda activate gdal
set -u
conda list
# site: unknown
