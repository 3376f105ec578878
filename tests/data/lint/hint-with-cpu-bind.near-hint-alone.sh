#!/bin/bash
#SBATCH --hint=nomultithread
srun ./app
# site: unknown
