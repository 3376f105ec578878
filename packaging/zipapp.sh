#!/bin/sh
# Makes one file of hpclaunch and what it needs (the core: to plan, submit and check), for homes with few inodes.
#   pip install shiv
#   sh packaging/zipapp.sh [WHEEL or folder of the source] [FILE]
# The file runs on the platform and with the minor version of Python that it was made with. At its first start it
# unpacks itself below $SHIV_ROOT (default ~/.shiv): give a folder on scratch.
set -eu
source=${1:-.}
file=${2:-hpclaunch.pyz}
constraints=$(dirname -- "$0")/../.ci/constraints.txt
shiv --quiet --compressed --console-script hpclaunch --python '/usr/bin/env python3' --output-file "$file" \
    --constraint "$constraints" "$source"
"$(head -n 1 "$(command -v shiv)" | cut -c 3-)" "$(dirname -- "$0")/zipapp_start.py" "$file" # shiv's own Python
echo "$file: $(wc -c <"$file") bytes"
