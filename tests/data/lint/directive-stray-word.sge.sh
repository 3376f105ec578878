#!/bin/bash
#$ -N my job
#$ -l h_rt=01:00:00
./app
# site: unknown
# expect: 2 directive-stray-word
