#!/bin/bash
#SBATCH --nodes=1 --time=10
finish() {
    wait
    date
}
( python a.py ) &
finish
# site: unknown
