#!/bin/bash
set -pipefail
srun ./app
# site: unknown
# expect: 2 set-option-misspelt
