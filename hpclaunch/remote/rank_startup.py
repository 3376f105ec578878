"""Python's start-up file in the ranks of a job, unless --no-stacks: it is sent to the job's folder as
sitecustomize.py.

It runs before the program, so it is short and imports nothing that Python has not loaded: it only waits for
the moment when the program imports torch or Horovod. An existing sitecustomize still runs. No fault of it may
end the program.

``HPCLAUNCH_PROFILE=AFTER:STEPS`` requests a trace of STEPS steps after the first AFTER, in the folder
``HPCLAUNCH_PROFILE_FOLDER``. With ``HPCLAUNCH_STACKS=SIGNAL`` Python writes where each of its threads stands
whenever the process gets that signal, to a file that ``rank_stands.py`` reads.
"""

# Runs in whatever Python the job has, from 3.8 on; typing would take longer to load than all of this.
from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder  # importlib.machinery without its other imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROFILED = ("torch.optim.optimizer", "horovod.torch", "horovod.tensorflow")


class AfterImport:
    """Calls functions after modules were imported, wherever the import is."""

    def __init__(self, here: str) -> None:
        self.here = here
        self.waits_for: dict[str, tuple[str, tuple[Any, ...]]] = {}
        """Module of the program -> the file that holds what follows, and what its ``actions`` take."""
        self.actions: dict[str, dict[str, Any]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find a module as usual; of those that it waits for, add what follows."""
        if name not in self.waits_for:
            return None
        spec = PathFinder.find_spec(name, path)
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return None
        execute = loader.exec_module
        file, wanted = self.waits_for[name]

        def exec_module(module: Any) -> None:
            execute(module)
            try:
                if file not in self.actions:
                    self.actions[file] = load(file, [self.here]).actions(*wanted)
                self.actions[file][name](module)
            except Exception as error:  # the program goes on
                print(f"hpclaunch: start-up: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

        loader.exec_module = exec_module
        return spec


def load(name: str, paths: list[str]) -> Any:
    """Run the module of this name in the folders; None where there is none."""
    spec = PathFinder.find_spec(name, paths)
    if spec is None or spec.loader is None:
        return None
    module: Any = type(sys)(name)
    module.__spec__, module.__file__ = spec, spec.origin
    spec.loader.exec_module(module)
    return module


def unnamed_file(name: str) -> int:
    """Open a file in memory that has no name any more: it costs the file system nothing and ends with us.

    Other processes of the user find it as /proc/PID/fd/NUMBER. A job's own file system may be what hangs.
    """
    path = f"/dev/shm/{name}.{os.getpid()}.{os.urandom(4).hex()}"  # noqa: S108  (O_EXCL: no file of others)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.unlink(path)
    return file


def prepare(here: str, environment: Any) -> None:
    """Leave the hooks that the job's script requests."""
    hooks = AfterImport(here)
    stacks = environment.get("HPCLAUNCH_STACKS", "")
    if stacks.isdigit():
        import faulthandler

        try:  # noqa: SIM105 - contextlib would be loaded into every Python
            faulthandler.register(int(stacks), unnamed_file("hpclaunch-stacks"))
        except (OSError, RuntimeError, ValueError):
            pass  # without memory for where the threads stand, nothing changes
        hooks.waits_for["torch.distributed.distributed_c10d"] = ("rank_recorder", (unnamed_file,))
    after, _, steps = environment.get("HPCLAUNCH_PROFILE", "").partition(":")
    folder = environment.get("HPCLAUNCH_PROFILE_FOLDER", "")
    if after.isdigit() and steps.isdigit() and folder:
        wanted = (int(after), int(steps), folder)
        hooks.waits_for.update(dict.fromkeys(PROFILED, ("rank_profile", wanted)))
    if hooks.waits_for:
        sys.meta_path.insert(0, hooks)


if __name__ == "sitecustomize":
    HERE = os.path.dirname(os.path.abspath(__file__))
    # Python would ask the file system for this folder again at each import of the program.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != HERE]
    prepare(HERE, os.environ)
    load("sitecustomize", sys.path)
