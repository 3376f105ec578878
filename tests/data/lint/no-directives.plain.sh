#!/bin/bash
srun ./app
# site: unknown
# expect: - no-directives
