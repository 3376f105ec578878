#!/usr/bin/env bash
export PYTHONUNBUFFERED=1
nosuchmodule load python/3.11 || echo "WARNING: no module system here, using $(command -v python)"
exec python shards_main.py "$@"
