"""The program: ``hpclaunch``, or ``python -m hpclaunch``."""

import gc


def main() -> None:
    """Run the command line and exit with its code."""
    # A command that ends in a tenth of a second leaves no garbage worth the collector's looking through all
    # loaded modules again and again, and once more at the exit.
    gc.set_threshold(100_000)
    try:
        from hpclaunch.cli.main import main as run

        run()
    except KeyboardInterrupt:  # before the command line takes care of it
        raise SystemExit(130) from None
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
