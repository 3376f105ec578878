#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
%(line_m)s
srun ./app %(name)s
# site: unknown
