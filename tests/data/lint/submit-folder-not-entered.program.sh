#!/bin/bash
#PBS -l select=1:ncpus=1
#PBS -l walltime=00:05:00
module load nvhpc
./matmul.exe
# site: unknown
# expect: 5 submit-folder-not-entered
