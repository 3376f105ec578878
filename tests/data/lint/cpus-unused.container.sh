#!/bin/sh
#SBATCH -c 100
#SBATCH --mem=300G
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load singularity
singularity exec EDTA.sif EDTA.pl --genome genome.fa --threads 10
# site: unknown
# expect: 7 cpus-unused
