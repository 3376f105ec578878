#!/bin/bash
srun --hint=nomultithread --cpu-bind=cores ./app
# site: unknown
# expect: 2 hint-with-cpu-bind
