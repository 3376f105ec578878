#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
echo begin
./prepare && echo ready
srun ./a
exit $?
# site: unknown
