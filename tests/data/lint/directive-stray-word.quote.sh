#!/bin/bash
#PBS -l select=1:ncpus=1
#PBS -l walltime=01:00:00
#PBS -N "two
./app
# site: unknown
# expect: 4 directive-stray-word
