#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun ./app
# site: polaris
# expect: 2 site-other-scheduler
