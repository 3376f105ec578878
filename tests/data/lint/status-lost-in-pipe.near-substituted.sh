#!/bin/bash
nodes=$(srun hostname | sort -u)
echo "$nodes"
# site: unknown
