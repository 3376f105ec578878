#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
STAR --runThreadN 4 --genomeDir genome --readFilesIn a.fq
# site: unknown
# expect: 4 tasks-for-threads
