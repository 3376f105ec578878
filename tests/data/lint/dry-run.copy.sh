#!/bin/bash
#SBATCH --time=24:00:00
rsync -avn results/ /archive/
python train.py --dry-run
# site: unknown
# expect: 3 dry-run
# expect: 4 dry-run
