#!/bin/bash
#$ -cwd
#$ -q all.q@node1
./app
# site: unknown
