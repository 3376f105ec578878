#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
LIST=hosts.$$
END='a$'
srun ./app $LIST $END
# site: unknown
