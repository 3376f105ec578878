"""Modules that do what torch's optimizers and its profiler do, as far as a recording of steps needs them."""

from __future__ import annotations

from pathlib import Path

FAKE_OPTIMIZER = """
before, after = [], []
class Handle:
    def __init__(self, hooks, hook): self.hooks, self.hook = hooks, hook
    def remove(self): self.hooks.remove(self.hook)
def register_optimizer_step_pre_hook(hook):
    before.append(hook)
    return Handle(before, hook)
def register_optimizer_step_post_hook(hook):
    after.append(hook)
    return Handle(after, hook)
class SGD:
    def step(self, inner=lambda: None):
        for hook in list(before): hook(self, (), {})
        inner()
        for hook in list(after): hook(self, (), {})
"""
FAKE_PROFILER = """
class ProfilerActivity: CPU, CUDA = "cpu", "cuda"
class profile:
    def __init__(self, activities): print("profile", activities)
    def start(self): print("start")
    def stop(self): print("stop")
    def export_chrome_trace(self, path): open(path, "w").write("[]")
"""


def make_fake_torch(folder: Path) -> None:
    """Write them to a folder that Python finds modules in."""
    for name, text in (
        ("torch/__init__.py", "class cuda:\n    is_available = staticmethod(lambda: False)\n"),
        ("torch/optim/__init__.py", ""),
        ("torch/optim/optimizer.py", FAKE_OPTIMIZER),
        ("torch/profiler.py", FAKE_PROFILER),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
