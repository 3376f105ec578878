#!/bin/bash
#SBATCH --nodes=1 --time=10
data=c
sample=d
name=e
sample_R1=/data/$sample.fastq
: ${name_:=x}
srun ./app $data $sample $name ${data}_ $sample_R1.gz ${sample}_trimmed.bam $name_ \$data_ '$data_'
# site: unknown
