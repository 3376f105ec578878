#!/bin/bash
#$ -cwd
#$ -l h_rt=2:00:00:00
./app
# site: unknown
# expect: 3 walltime-unreadable
