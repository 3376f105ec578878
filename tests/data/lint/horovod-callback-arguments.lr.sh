#!/bin/bash
srun python old_callbacks.py
# site: unknown
# expect: 5 horovod-callback-arguments
