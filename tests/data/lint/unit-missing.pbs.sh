#!/bin/bash
#PBS -l walltime=48:00
#PBS -l mem=16
cd /scratch/project
./app
# site: unknown
# expect: 2 unit-missing
# expect: 3 unit-missing
