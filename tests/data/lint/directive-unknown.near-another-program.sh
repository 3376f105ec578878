#!/bin/bash
#YBATCH -r am_1
#YBATCH -N 1
srun ./app
# site: unknown
