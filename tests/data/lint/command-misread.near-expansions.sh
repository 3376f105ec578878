#!/bin/zsh
#SBATCH --nodes=1
#SBATCH --time=01:00:00
arg=$1
[ ${arg#*=} ] && srun ./app
[ "${N:=4}" ] && srun ./app
for i in {1..$N}; do srun ./app $i; done
# site: unknown
