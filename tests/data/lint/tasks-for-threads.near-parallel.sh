#!/bin/bash
#SBATCH --ntasks=40
#SBATCH --time=01:00:00
parallel -j 40 --sshloginfile hosts bwa mem -t 1 ref.fa {} ::: *.fq
charmrun +p40 ./app --threads 2
# site: unknown
