#!/bin/bash
#SBATCH --account=abc
#SBATCH --nodes=2
#SBATCH --time=01:00:00
NCCL_IB_DISABLE=1 srun ./app
# site: leonardo
# expect: 5 infiniband-disabled
