#!/bin/bash
if ! command -v srun > /dev/null 2>&1 | cat; then exit 1; fi
# site: unknown
