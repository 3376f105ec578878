#!/bin/bash
srun python old_callbacks.py
# site: unknown
# expect: 2 horovod-callback-arguments
