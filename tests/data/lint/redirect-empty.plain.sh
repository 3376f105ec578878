#!/bin/bash
#SBATCH --nodes=1 --time=10
OUTPUT=
python x.py > ${OUTPUT}
# site: unknown
# expect: 4 redirect-empty
