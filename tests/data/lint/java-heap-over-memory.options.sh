#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --mem=32G
gatk --java-options "-Xmx64g" HaplotypeCaller -I a.bam
# site: unknown
# expect: 5 java-heap-over-memory
