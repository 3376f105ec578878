#!/bin/bash
#SBATCH -N 1 -n 1 --time=10
if [ -f x ]; then
  # ./app
else
  ./b
fi
# site: unknown
# expect: 5 shell-syntax
