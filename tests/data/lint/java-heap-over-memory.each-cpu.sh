#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --ntasks=1 --cpus-per-task=4 --mem-per-cpu=2G
export JAVA_TOOL_OPTIONS=-Xmx16000m
./app.sh
# site: unknown
# expect: 5 java-heap-over-memory
