#!/bin/bash
#BSUB -J "a – b"
#BSUB -P "–x"
#BSUB -n4 -R"span[ptile=4]" -Is -ul
./app
# site: unknown
