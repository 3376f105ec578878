#!/bin/bash
#SBATCH --ntasks=40
#SBATCH --time=01:00:00
iqtree2 -p all.nex -m MFP+MERGE --prefix tree -nt AUTO
# site: unknown
# expect: 4 tasks-for-threads
