#!/bin/bash
set -euo pipefail
srun python train.py | tee train.log
# site: unknown
