#!/bin/bash
#SBATCH --time=1:00:00
nextflow run main.nf `# the pipeline` (a fork)
# site: unknown
# expect: 3 shell-syntax
