#!/bin/bash
srun ./app > /dev/null 2>&1
# site: unknown
# expect: 2 stderr-discarded
