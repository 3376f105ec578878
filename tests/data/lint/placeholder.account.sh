#!/bin/bash
#SBATCH --account=<your project>
#SBATCH --partition=[some queue]
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 placeholder
