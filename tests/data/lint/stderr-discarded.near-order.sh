#!/bin/bash
srun ./app 2>&1 >/dev/null
# site: unknown
