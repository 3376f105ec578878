#!/bin/bash
#$ -l h_rt=24
./app
# site: unknown
# expect: 2 unit-missing
