#!/bin/bash
#SBATCH --time=24:00:00
srun snakemake --use-singularity --singularity-args "-B /scratch --nv" --jobs 45 -n &> log.txt
# site: unknown
# expect: 3 dry-run
