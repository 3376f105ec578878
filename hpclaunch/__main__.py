"""The program: ``hpclaunch``, or ``python -m hpclaunch``."""

import gc
import os


def main() -> None:
    """Run the command line and end the process with its code."""
    # A command that ends in a tenth of a second leaves no garbage worth the collector's looking through all
    # loaded modules again and again.
    gc.set_threshold(100_000)
    try:
        from hpclaunch.cli.main import main as run

        code = run()
    except KeyboardInterrupt:  # before the command line takes care of it
        raise SystemExit(130) from None
    # All is written and closed. Python itself would first take all modules apart, for 5 ms.
    os._exit(code)


if __name__ == "__main__":
    main()
