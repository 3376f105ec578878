#!/bin/bash
#SBATCH --account=${PROJECT:-your_account}
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 directive-variable
# expect: 2 placeholder
