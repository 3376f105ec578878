#!/bin/bash
#$ -cwd
#$ -l h_rt=01:00:00
PYTHON=python3
# $PYTHON lda.py --topics 50
##$PYTHON lda.py
cat > a <<EOF
#$PYTHON
EOF
$PYTHON lda.py
# site: unknown
