#!/bin/bash
#$ -l h_rt=01:00:00
#$ -cwd
./app
# site: unknown
# expect: 3 directive-stray-word
