#!/bin/sh
set -e
awk '{ s += $1 } END { printf "%d\n", s }' "$1"
