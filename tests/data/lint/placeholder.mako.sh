#!/bin/bash
#SBATCH --time=${ job.walltime }
#SBATCH --nodes=${job.nodes}
#SBATCH --ntasks=${tasks(job)}
srun ./app
# site: unknown
# expect: 2 placeholder
