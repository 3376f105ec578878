#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
module load openmpi/4.1.5
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
mpirun --map-by core ./app
mpirun -np 2 ./app
mpirun --bind-to core ./app
# site: unknown
# expect: 8 threads-over-cpus
# expect: 9 threads-over-cpus
# expect: 10 threads-over-cpus
