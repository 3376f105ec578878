"""hpclaunch: distributed deep-learning jobs, bound, configured, verified and measured with one command.

From Python: ``hpclaunch.Job``, ``jobs``, ``find_job`` and ``as_completed``; see `hpclaunch.api`.
"""

TYPE_CHECKING = False  # not from typing: Ctrl-C while that is loaded here would show a traceback
if TYPE_CHECKING:
    from hpclaunch.api import Job, JobHandle, as_completed, find_job, jobs

__version__ = "0.2.0"
__all__ = ["Job", "JobHandle", "as_completed", "find_job", "jobs"]


def __getattr__(name: str) -> object:
    """Load the interface when it is first used: the command line imports this package, too."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("hpclaunch.api"), name)
