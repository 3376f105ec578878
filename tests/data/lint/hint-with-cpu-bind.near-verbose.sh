#!/bin/bash
#SBATCH --hint=nomultithread
srun --cpu-bind=verbose ./app
# site: unknown
