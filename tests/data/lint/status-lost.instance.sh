#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
apptainer instance start ollama.sif server
python client.py
apptainer instance stop server
scancel 4711
# site: unknown
# expect: 5 status-lost
