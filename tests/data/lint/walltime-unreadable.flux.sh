#!/bin/bash
#flux: --nodes=2
#flux: --time=00:10:00
flux run -N2 ./app
# site: unknown
# expect: 3 walltime-unreadable
