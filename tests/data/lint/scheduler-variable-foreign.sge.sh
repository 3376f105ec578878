#!/bin/bash
#$ -pe mpi 8
#$ -l h_rt=01:00:00
cd "$PBS_O_WORKDIR"
mpirun -np "$NSLOTS" ./app --task "$SLURM_ARRAY_TASK_ID"
# site: unknown
# expect: 4 scheduler-variable-foreign
# expect: 5 scheduler-variable-foreign
