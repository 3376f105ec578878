#!/bin/bash
srun ./app && tee app.log
# site: unknown
# expect: 2 tee-without-pipe
