"""Recording of some steps of a program on one rank, for --profile; ``rank_startup.py`` loads it.

A step is one of the first optimizer that takes one; a profiler records only the thread that starts it, and
the hook runs in the thread that trains. No fault of it may end the program: each is one line on stderr.
"""

# Runs in whatever Python the job has, from 3.8 on.
from __future__ import annotations

import os
import sys
from typing import Any

_RANKS = (
    *("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID", "FLUX_TASK_RANK"),
    *("JSM_NAMESPACE_RANK", "ALPS_APP_PE", "SLURM_PROCID", "HPCLAUNCH_RANK"),
)


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
        self.hooks: list[Any] = []
        self.within = 0
        """Steps of that optimizer that have begun: Horovod's calls that of the class that it wraps."""

    def torch_loaded(self, module: Any) -> None:
        """torch's optimizers are there: follow their steps."""
        begins = getattr(module, "register_optimizer_step_pre_hook", None)
        ends = getattr(module, "register_optimizer_step_post_hook", None)
        if begins is None or ends is None:
            if not rank():
                say("this torch has no hook for steps (torch 2.0 and newer have); nothing is recorded")
            return
        import atexit

        self.hooks = [begins(self.begins), ends(self.stepped)]
        atexit.register(self.over)

    def begins(self, optimizer: Any, *_: Any) -> None:
        """A step begins."""
        if self.optimizer is None:
            self.optimizer = id(optimizer)
        self.within += id(optimizer) == self.optimizer

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """An optimizer took a step."""
        if id(optimizer) != self.optimizer:
            return
        self.within = max(self.within - 1, 0)
        if self.within:
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
            whole = os.environ.get("HOROVOD_TIMELINE")
            if whole == "DYNAMIC":
                horovod.start_timeline(os.path.join(self.folder, "horovod-timeline.json"))
                self.horovod = horovod
            elif not rank():
                say(f"HOROVOD_TIMELINE={whole} was set: Horovod records the whole run there")
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
        for hook in self.hooks:
            hook.remove()
        self.hooks = []

    def number(self) -> int:
        """This rank, as torch counts where it does."""
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
        return rank()

    def over(self) -> None:
        """The program ends: write what there is, or report why there is nothing."""
        if self.taken < 0:
            return
        try:
            if self.profiler is not None or self.horovod is not None:
                self.stop()
            elif not rank():
                what = f"the program took {self.taken} steps of a torch optimizer"
                say(f"{what}; recording begins after {self.after}")
        except Exception as error:  # it has ended all the same
            say(f"rank {rank()}: {type(error).__name__}: {error}; nothing is recorded")

    def horovod_tensorflow(self, _: Any) -> None:
        """TensorFlow has no hook for steps: Horovod's timeline of the whole run."""
        if not rank():
            say("TensorFlow has no hook for steps: Horovod records the whole run")
        os.makedirs(self.folder, exist_ok=True)
        os.environ.setdefault("HOROVOD_TIMELINE", os.path.join(self.folder, "horovod-timeline.json"))


def actions(after: int, steps: int, folder: str) -> dict[str, Any]:
    """Module of the program -> what follows when it was imported."""
    profile = Profile(after, steps, folder)
    return {
        "torch.optim.optimizer": profile.torch_loaded,
        # Horovod's timeline can be started and stopped (0.21 and newer).
        "horovod.torch": lambda _: os.environ.setdefault("HOROVOD_TIMELINE", "DYNAMIC"),
        "horovod.tensorflow": profile.horovod_tensorflow,
    }
