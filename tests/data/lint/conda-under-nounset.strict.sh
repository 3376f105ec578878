#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -euo pipefail
source "$HOME/miniforge3/etc/profile.d/conda.sh"
conda activate gdal
./app
# site: unknown
# expect: 6 conda-under-nounset
