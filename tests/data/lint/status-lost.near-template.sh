#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --job-name=fit_{{job_id}}
python {{program}} {{input}}
conda deactivate
# site: unknown
# expect: 4 placeholder
