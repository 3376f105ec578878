#!/bin/bash
set -eu pipefail
srun ./app
# site: unknown
# expect: 2 set-option-misspelt
