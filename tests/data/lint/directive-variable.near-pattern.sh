#!/bin/bash
#SBATCH --output=%x-%j.out
srun ./app
# site: unknown
