#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=8
#SBATCH --time=01:00:00
THREADS=16
singularity exec tool.sif EDTA.pl --genome a.fa --threads $THREADS
# site: unknown
# expect: 6 threads-over-job
