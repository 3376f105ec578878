#!/bin/bash
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
raxml-ng --msa a.fa --threads 4
# site: unknown
# expect: 4 cpus-unused
