#!/bin/bash
#$ -N name of it
#$ -cwd
#$ -l h_rt=01:00:00
#PBS -V
./a
# site: unknown
# expect: 2 directive-stray-word
