#!/bin/bash
#SBATCH --output=/no-such-cluster/project/%j.out
srun ./app
# site: unknown
