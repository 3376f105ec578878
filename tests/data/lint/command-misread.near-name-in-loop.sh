#!/bin/bash
#SBATCH --nodes=1 --time=10
folders="a b c"
for ONE in $folders; do srun ./app "$ONE"; done
for ONE in data; do srun ./app "$ONE"; done
for ONE in folders other; do srun ./app "$ONE"; done
for ONE in folders/; do srun ./app "$ONE"; done
for N in "folders"; do srun ./app "$N"; done
for M in M; do srun ./app "$M"; done
# site: unknown
