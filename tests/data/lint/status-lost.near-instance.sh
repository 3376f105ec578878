#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
apptainer instance start ollama.sif server
if ! python client.py; then
    echo "the client failed"
fi
apptainer instance stop server
docker rm -f proxy
echo stopped
# site: unknown
