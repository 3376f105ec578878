#!/bin/bash
exec 2>/dev/null
srun ./app
# site: unknown
# expect: 2 stderr-discarded
