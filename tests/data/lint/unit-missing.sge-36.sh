#!/bin/bash
#$ -l h_rt=36
./app
# site: unknown
# expect: 2 unit-missing
