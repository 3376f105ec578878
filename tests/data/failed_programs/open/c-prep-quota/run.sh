#!/bin/bash
# one of these per rank
set -eu
cd "$(dirname "$0")"
export PREP_WORKERS=2
me=${RANK:-${SLURM_PROCID:-${OMPI_COMM_WORLD_RANK:-0}}}
echo "== prep part $me starts on $(uname -n)"
python -u prepare.py --part "$me" --quotas quotas.csv
echo "== prep part $me finished"
