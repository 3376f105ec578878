"""Python's start-up file in the ranks of a job with --profile: it is sent to the job's folder as
sitecustomize.py.

It runs before the program, so it is short and imports nothing that Python has not loaded: it only waits for
the moment when the program imports torch or Horovod. An existing sitecustomize still runs. No fault of it may
end the program.

``HPCLAUNCH_PROFILE=AFTER:STEPS`` requests a trace of STEPS steps after the first AFTER, in the folder
``HPCLAUNCH_PROFILE_FOLDER``.
"""

# Runs in whatever Python the job has, from 3.8 on; typing would take longer to load than all of this.
from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder  # importlib.machinery without its other imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WAITS_FOR = ("torch.optim.optimizer", "horovod.torch", "horovod.tensorflow")


class AfterImport:
    """Calls a function after a module was imported, wherever the import is."""

    def __init__(self, here: str, after: int, steps: int, folder: str) -> None:
        self.here = here
        self.wanted = (after, steps, folder)
        self.actions: dict[str, Any] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find a module as usual; of those that it waits for, add what follows."""
        if name not in WAITS_FOR:
            return None
        spec = PathFinder.find_spec(name, path)
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return None
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            try:
                self.follow(name, module)
            except Exception as error:  # the program goes on
                print(f"hpclaunch: --profile: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

        loader.exec_module = exec_module
        return spec

    def follow(self, name: str, module: Any) -> None:
        """Do what follows the import of a module."""
        if not self.actions:
            self.actions = load("rank_profile", [self.here]).actions(*self.wanted)
        self.actions[name](module)


def load(name: str, paths: list[str]) -> Any:
    """Run the module of this name in the folders; None where there is none."""
    spec = PathFinder.find_spec(name, paths)
    if spec is None or spec.loader is None:
        return None
    module: Any = type(sys)(name)
    module.__spec__, module.__file__ = spec, spec.origin
    spec.loader.exec_module(module)
    return module


def prepare(here: str, environment: Any) -> None:
    """Leave the hook that the job's script requests."""
    after, _, steps = environment.get("HPCLAUNCH_PROFILE", "").partition(":")
    folder = environment.get("HPCLAUNCH_PROFILE_FOLDER", "")
    if after.isdigit() and steps.isdigit() and folder:
        sys.meta_path.insert(0, AfterImport(here, int(after), int(steps), folder))


if __name__ == "sitecustomize":
    HERE = os.path.dirname(os.path.abspath(__file__))
    prepare(HERE, os.environ)
    load("sitecustomize", [path for path in sys.path if os.path.abspath(path or os.curdir) != HERE])
