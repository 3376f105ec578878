#!/bin/bash
#SBATCH --job-name=a–b
#SBATCH --comment="a – b"
#SBATCH --nodes=1 # one node – no more
srun ./app
# site: unknown
