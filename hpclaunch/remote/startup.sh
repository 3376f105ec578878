# shellcheck shell=bash
# Python's start-up file for the ranks, in the folder startup: at a signal Python notes where its threads stand, for
# hpclaunch stacks, and --profile records steps by it. --no-stacks leaves it out where nothing else needs it.
#
# From plan.sh: hpclaunch_python, the program's Python, which compiles the file before the ranks start: else each of them
# would, and write a copy of its own; hpclaunch_stacks, the signal.
hpclaunch_add_startup() {
  export HPCLAUNCH_STACKS=$hpclaunch_stacks PYTHONPATH="$HPCLAUNCH_FILES/startup${PYTHONPATH:+:$PYTHONPATH}"
  timeout 20 "$hpclaunch_python" -IS -m compileall -q "$HPCLAUNCH_FILES/startup" < /dev/null > /dev/null 2>&1 || :
}
# shellcheck disable=SC2034  # the job's script calls it
hpclaunch_startup=hpclaunch_add_startup
