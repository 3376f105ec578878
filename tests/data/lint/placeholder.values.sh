#!/bin/bash
#SBATCH --time=<time>
#SBATCH --nodes=<N>
#SBATCH --gres=gpu:N
#SBATCH --account=INSERT_ACCOUNT
#SBATCH --qos=QOS_NAME
cd /your/project
srun ./app
# site: unknown
# expect: 2 placeholder
