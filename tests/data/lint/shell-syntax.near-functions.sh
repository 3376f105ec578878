#!/bin/bash
#SBATCH --time=01:00:00
run() { python train.py "$@"; }
files=(a b)
if (( ${#files[@]} > 1 )) && [[ ${files[0]} == (a|b) ]]; then (cd data && run "(8,)"); fi
case $1 in (x) run x ;; y) run \(y\) ;; esac
diff <(run 1) <(run 2)
# site: unknown
