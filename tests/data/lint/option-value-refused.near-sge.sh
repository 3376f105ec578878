#!/bin/sh
#$ -wd /scratch/run
#$ -o $HOME/log.$JOB_ID
#$ -pe smp 1
#$ -v OUT=$PWD
#$ -V
./app
# site: unknown
