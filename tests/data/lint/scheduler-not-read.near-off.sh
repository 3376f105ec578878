#!/bin/sh
# PJM -L "node=2"
mpiexec ./app
# site: unknown
