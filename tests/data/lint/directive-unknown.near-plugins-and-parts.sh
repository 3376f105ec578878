#!/bin/bash
#SBATCH --uenv=pytorch/v2.8.0 --view=default
#SBATCH --container-image=image.sqsh
#SBATCH hetjob
#SBATCH -N2
srun ./app
# site: unknown
