#!/bin/bash
#SBATCH --cpus-per-task=8
srun ./app
# site: unknown
# expect: 3 cpus-per-task-not-passed
