#!/bin/bash
set --errexit
srun ./app
# site: unknown
# expect: 2 set-option-misspelt
