#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
A=$(sbatch a.sh)
sbatch --dependency=afterok:$A b.sh
R=$(sbatch c.sh)
sbatch -d afterok:${R} d.sh
R fit.R
sed -n '${SLURM_ARRAY_TASK_ID}p' list
mpirun -np 4 --hostfile $SLURM_JOB_NODELIST ./app
cat $SLURM_JOB_NODELIST > hosts
$ ./app
bsub -R rusage[mem=4000] span[hosts=1] ./app
bsub -q long -R select[mem>4000] ./app
# site: unknown
# expect: 4 command-refused
# expect: 6 command-refused
# expect: 8 command-refused
# expect: 9 command-refused
# expect: 10 command-refused
# expect: 11 command-refused
# expect: 12 command-refused
# expect: 13 command-refused
# expect: 14 command-refused
