#!/bin/bash
#$ -cwd
#$ -q longhorn.q
./app
# site: unknown
# expect: - time-missing
