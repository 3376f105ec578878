#!/bin/bash
# a comment

#SBATCH --nodes=2
srun ./app
# site: unknown
