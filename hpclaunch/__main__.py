"""Run the command line as ``python -m hpclaunch``."""

from hpclaunch.cli.main import main

main()
