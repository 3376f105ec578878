#!/bin/bash
set -o pipefial
srun ./app
# site: unknown
# expect: 2 set-option-misspelt
