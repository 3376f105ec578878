#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
time -p mpirun -n 2 /shared/bin/singularity exec --env A=1 osu.sif osu_bw -d cuda D D
# site: unknown
# expect: 5 container-without-gpu
