#!/bin/bash
#SBATCH --nodes=1 --time=10
NORMAL=a
TUMOR=b
sample=c
for file in a b; do
  cp /data/x $file_$SLURM_JOB_ID
  srun ./app $NORMAL $TUMOR --out output_$NORMAL_$TUMOR
  srun ./app $sample /data/$sample_R1.fastq
  srun ./app /data/$sample_trimmed.bam $file
done
# site: unknown
# expect: 7 variable-undefined
# expect: 8 variable-undefined
# expect: 9 variable-undefined
# expect: 10 variable-undefined
