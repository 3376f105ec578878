#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
A=$(sbatch --parsable a.sh)
sbatch --dependency=afterok:$A b.sh
B=$(sbatch b.sh | cut -d ' ' -f 4)
sbatch --dependency=afterok:$B b.sh
C=$(sbatch c.sh)
sbatch --dependency=afterok:${C##* } d.sh
C=${C##* }
sbatch --dependency=afterok:$C e.sh
echo "$C"
R CMD BATCH fit.R
R --vanilla < fit.R
R --no-save -f fit.R
R --slave --args a.R < b.R
sed -n "${SLURM_ARRAY_TASK_ID}p" list
sed -n '$p;${p;d}' list
sed -i 's/@N@/$NAME/' run.sh
sed '$!N;P;D' list
mpirun -np 4 -f "$HOSTFILE" ./app
echo "$SLURM_JOB_NODELIST" | wc -l
bsub -R "rusage[mem=4000] span[hosts=1]" ./app
bsub -R 'select[mem>4000]' ./app > log
bsub -R span[hosts=1] ./app
# site: unknown
# expect: 17 scheduler-variable-unset
