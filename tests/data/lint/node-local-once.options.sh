#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
unzip -q data.zip -d $TMPDIR
srun ./app --data $TMPDIR/data
# site: unknown
# expect: 4 node-local-once
