#!/bin/bash
echo start | srun --input=0 ./app
# site: unknown
