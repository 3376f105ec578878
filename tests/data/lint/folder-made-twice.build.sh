#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -euo pipefail
mkdir build
cmake -B build
# site: unknown
# expect: 5 folder-made-twice
