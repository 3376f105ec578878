#!/bin/bash
#flux: --nodes=1
#flux: -t 30
module list
#flux: -n 1
flux run ./app
# site: unknown
# expect: 5 directive-ignored
