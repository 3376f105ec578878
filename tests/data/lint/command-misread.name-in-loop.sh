#!/bin/bash
#SBATCH --nodes=1 --time=10
scan_folders="a b c"
for SCAN in scan_folders; do
  srun ./app "$SCAN"
done
names = "a b"
for NAME in names
do
  srun ./app "$NAME"
done
# site: unknown
# expect: 4 command-misread
# expect: 7 assignment-space
# expect: 8 command-misread
