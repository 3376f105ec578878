#!/bin/bash
set -euxo pipefail
set +x
set -o errexit -o nounset
srun ./app
# site: unknown
