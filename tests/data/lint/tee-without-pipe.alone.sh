#!/bin/bash
srun ./app
tee app.log
# site: unknown
# expect: 3 tee-without-pipe
