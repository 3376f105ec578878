#!/bin/bash
#PBS -l select=1:ncpus=1
#PBS -l walltime=01:00:00
java -jar maxent.jar layers=layers
# site: unknown
# expect: 4 submit-folder-not-entered
