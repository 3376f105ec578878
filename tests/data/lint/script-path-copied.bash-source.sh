#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
srun "$HERE/app"
# site: unknown
# expect: 4 script-path-copied
