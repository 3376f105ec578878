#!/bin/bash
srun ./app 2>&1 | grep -v warning || true
# site: unknown
