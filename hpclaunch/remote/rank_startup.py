"""Python's start-up file in the ranks of a job with --profile: it is sent to the job's folder as
sitecustomize.py.

It runs before the program and costs about a millisecond: nothing is imported that Python has not loaded, only
a hook is left for the moment when the program imports torch or Horovod. An existing sitecustomize still runs.
No fault of it may end the program: each is one line on stderr.

``HPCLAUNCH_PROFILE=AFTER:STEPS`` asks for a trace of STEPS steps after the first AFTER, in the folder
``HPCLAUNCH_PROFILE_FOLDER``. A step is one of the first optimizer that takes one; a profiler records only the
thread that starts it, and the hook runs in the thread that trains.
"""

# Runs in whatever Python the job has, from 3.8 on.
from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from typing import Any, Callable  # noqa: UP035

_RANKS = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
)
_OPTIMIZER = "torch.optim.optimizer"


def say(text: str) -> None:
    """One line on stderr."""
    print(f"hpclaunch: --profile: {text}", file=sys.stderr, flush=True)


def rank() -> int:
    """This rank, as its launcher says; 0 without one."""
    values = (os.environ.get(name, "") for name in _RANKS)
    return next((int(value) for value in values if value.isdigit()), 0)


class Profile:
    """A trace of some steps of this process."""

    def __init__(self, after: int, steps: int, folder: str) -> None:
        self.after = after
        self.steps = steps
        self.folder = folder
        self.taken = 0
        self.optimizer: Any = None
        """The number of the one whose steps are counted."""
        self.profiler: Any = None
        self.horovod: Any = None
        self.hook: Any = None

    def torch_loaded(self, module: Any) -> None:
        """torch's optimizers are there: follow their steps."""
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is None:
            if not rank():
                say("this torch has no hook for steps (torch 2.0 and newer have); nothing is recorded")
            return
        import atexit

        self.hook = register(self.stepped)
        atexit.register(self.over)

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """An optimizer took a step."""
        if self.optimizer is None:
            self.optimizer = id(optimizer)
        if id(optimizer) != self.optimizer:
            return
        self.taken += 1
        try:
            if self.taken == max(self.after, 1):
                self.start()
            elif self.taken == max(self.after, 1) + self.steps:
                self.stop()
        except Exception as error:  # the program goes on
            self.end()
            say(f"rank {rank()}: {type(error).__name__}: {error}; nothing is recorded")

    def start(self) -> None:
        """Begin, in the thread that trains."""
        import torch

        os.makedirs(self.folder, exist_ok=True)
        horovod = sys.modules.get("horovod.torch")
        if horovod is not None and horovod.is_initialized():
            if os.environ.get("HOROVOD_TIMELINE") == "DYNAMIC":
                horovod.start_timeline(os.path.join(self.folder, "horovod-timeline.json"))
                self.horovod = horovod
            if not torch.cuda.is_available():
                return  # its collectives are in its timeline only
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        elif getattr(torch, "xpu", None) is not None and torch.xpu.is_available():
            activities.append(ProfilerActivity.XPU)
        self.profiler = profile(activities=activities)
        self.profiler.start()

    def stop(self) -> None:
        """End, and write the trace."""
        profiler, horovod = self.profiler, self.horovod
        self.end()
        if horovod is not None:
            horovod.stop_timeline()
        if profiler is not None:
            profiler.stop()
            path = os.path.join(self.folder, f"trace-rank{self.number()}.json")
            profiler.export_chrome_trace(f"{path}.new")
            os.replace(f"{path}.new", path)

    def end(self) -> None:
        """No further step is followed."""
        self.profiler = self.horovod = None
        self.taken = -(1 << 62)
        if self.hook is not None:
            self.hook.remove()
            self.hook = None

    def number(self) -> int:
        """This rank, as torch counts where it does."""
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
        return rank()

    def over(self) -> None:
        """The program ends: write what there is, or say why there is nothing."""
        if self.taken < 0:
            return
        taken = self.taken
        try:
            if self.profiler is not None or self.horovod is not None:
                self.stop()
            elif not rank():
                say(
                    f"the program took {taken} steps of a torch optimizer; recording begins after "
                    f"{self.after}"
                )
        except Exception as error:  # it has ended all the same
            say(f"rank {rank()}: {type(error).__name__}: {error}; nothing is recorded")

    def horovod_torch(self, _: Any) -> None:
        """Horovod's timeline can be started and stopped (0.21 and newer)."""
        os.environ.setdefault("HOROVOD_TIMELINE", "DYNAMIC")

    def horovod_tensorflow(self, _: Any) -> None:
        """TensorFlow has no hook for steps: Horovod's timeline of the whole run."""
        os.makedirs(self.folder, exist_ok=True)
        os.environ.setdefault("HOROVOD_TIMELINE", os.path.join(self.folder, "horovod-timeline.json"))


class AfterImport:
    """Calls a function after a module was imported, whoever imports it."""

    def __init__(self, actions: dict[str, Callable[[Any], None]]) -> None:
        self.actions = actions

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find a module as usual; of those in the table, add what follows."""
        action = self.actions.get(name)
        if action is None:
            return None
        spec = PathFinder.find_spec(name, path)
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return None
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            try:
                action(module)
            except Exception as error:  # the program goes on
                say(f"{type(error).__name__}: {error}; nothing is recorded")

        loader.exec_module = exec_module
        return spec


def prepare(environment: Any) -> None:
    """Leave the hooks that the job's script asks for."""
    text = environment.get("HPCLAUNCH_PROFILE", "")
    folder = environment.get("HPCLAUNCH_PROFILE_FOLDER", "")
    after, _, steps = text.partition(":")
    if not (after.isdigit() and steps.isdigit() and folder):
        return
    profile = Profile(int(after), int(steps), folder)
    actions = {
        _OPTIMIZER: profile.torch_loaded,
        "horovod.torch": profile.horovod_torch,
        "horovod.tensorflow": profile.horovod_tensorflow,
    }
    sys.meta_path.insert(0, AfterImport(actions))  # type: ignore[arg-type]


def run_existing(here: str) -> None:
    """Run the sitecustomize that Python would have run without this one."""
    others = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = type(sys)("sitecustomize")
        module.__spec__, module.__file__ = spec, spec.origin
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    prepare(os.environ)
    run_existing(os.path.dirname(os.path.abspath(__file__)))
