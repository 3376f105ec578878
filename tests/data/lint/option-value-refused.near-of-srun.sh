#!/bin/bash
srun -N 2 dp train water_se_a.json > log
srun --kill-on-bad-exit=1 --mpi=pspmix ./app
srun -K1 --wait=60 -t 2:00:00 --mpi=pmix_v4 ./app
srun -l --wait 0 --het-group=0,1 ./app
# site: unknown
