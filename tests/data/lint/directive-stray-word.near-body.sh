#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --comment=it\'s
{
#SBATCH: not read
srun ./app
}
# site: unknown
