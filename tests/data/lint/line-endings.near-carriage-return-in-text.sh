#!/bin/bash
#SBATCH --nodes=2
printf "step\r"
srun ./app
# site: unknown
