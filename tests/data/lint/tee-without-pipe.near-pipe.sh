#!/bin/bash
set -o pipefail
srun ./app | tee app.log
# site: unknown
