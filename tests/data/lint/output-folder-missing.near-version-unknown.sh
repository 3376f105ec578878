#!/bin/bash
#SBATCH --output=logs/%x-%j.out
srun ./app
# site: unknown
