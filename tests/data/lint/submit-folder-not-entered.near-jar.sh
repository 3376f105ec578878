#!/bin/bash
#PBS -l select=1:ncpus=1
#PBS -l walltime=01:00:00
java -jar $EBROOTPICARD/picard.jar
Rscript /data/a.R
Rscript -e "1"
# site: unknown
