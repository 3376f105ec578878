#!/bin/ksh
set -A nodes a b
srun ./app ${nodes[0]}
# site: unknown
