#!/bin/bash
srun -N dp train water_se_a.json > log
srun --kill-on-bad-exit=yes --mpi=PMIX ./app
srun --wait=1:00 -t 2h ./app
srun --label=1 ./app
# site: unknown
# expect: 2 option-value-refused
# expect: 3 option-value-refused
# expect: 4 option-value-refused
# expect: 5 option-value-refused
