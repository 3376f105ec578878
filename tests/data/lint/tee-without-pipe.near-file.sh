#!/bin/bash
tee copy.txt < input.txt
tee note.txt <<< "text"
srun ./app
# site: unknown
