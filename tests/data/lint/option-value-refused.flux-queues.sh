#!/bin/bash
#flux: -q batch,debug
#flux: -N 1
#flux: -t 60m
./app
# site: unknown
# expect: 2 option-value-refused
