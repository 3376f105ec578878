#!/bin/bash
set -errext -nounset -o pipefail
srun ./app
# site: unknown
# expect: 2 set-option-misspelt
