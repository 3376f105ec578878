#!/bin/bash
srun ./app >/dev/null
# site: unknown
