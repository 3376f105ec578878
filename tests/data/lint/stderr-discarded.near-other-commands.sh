#!/bin/bash
module list 2>/dev/null
srun hostname 2>/dev/null
srun ./app 2>app.err
# site: unknown
