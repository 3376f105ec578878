#!/bin/bash
set -o nounset

#flux: --nodes=1
# one process per node
#flux: -n 1
#flux: -t 30
flux run ./app
# site: unknown
