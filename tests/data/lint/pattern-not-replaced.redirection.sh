#!/bin/bash
#SBATCH -N 1 -n 1 --time=10 --output=log/%j.out
./app > out-%j.txt
set -o pipefail
./app 2>&1 | tee "$HOME/log.%A"
# site: unknown
# expect: 3 pattern-not-replaced
# expect: 5 pattern-not-replaced
# expect: 2 output-folder-missing
