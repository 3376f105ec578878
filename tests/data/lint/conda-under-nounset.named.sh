#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -o nounset
eval "$(micromamba shell hook --shell bash)"
micromamba activate gdal
./app
# site: unknown
# expect: 6 conda-under-nounset
