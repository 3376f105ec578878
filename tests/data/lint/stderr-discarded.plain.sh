#!/bin/bash
srun ./app 2>/dev/null
# site: unknown
# expect: 2 stderr-discarded
