#!/bin/bash
#$ -cwd
#$ -q medium*
./app
# site: unknown
