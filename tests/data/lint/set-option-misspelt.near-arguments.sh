#!/bin/bash
set -- -errext one
set one two
srun ./app
# site: unknown
