"""Rules about the Python files that a script launches."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hpclaunch.lint.launch_lines import python_files
from hpclaunch.lint.lint_rule import Context, Violation, rule


class Signature(NamedTuple):
    """The arguments of a callback of Horovod 0.28, in order."""

    names: tuple[str, ...]
    required: int


# horovod/tensorflow/keras/callbacks.py and horovod/keras/callbacks.py of 0.28.1
_CALLBACKS = {
    "BroadcastGlobalVariablesCallback": Signature(("root_rank", "device", "local_variables"), 1),
    "MetricAverageCallback": Signature(("device",), 0),
    "LearningRateScheduleCallback": Signature(
        (
            "initial_lr",
            "multiplier",
            "start_epoch",
            "end_epoch",
            "staircase",
            "momentum_correction",
            "steps_per_epoch",
        ),
        2,
    ),
    "LearningRateWarmupCallback": Signature(
        ("initial_lr", "warmup_epochs", "momentum_correction", "steps_per_epoch", "verbose"), 1
    ),
}


@rule(
    "horovod-callback-arguments",
    "error",
    what="A Horovod callback in a launched Python file has arguments that no longer exist, or lacks"
    " required ones.",
    why="Horovod 0.28 raises a TypeError at the start of training: `LearningRateWarmupCallback` has no"
    " `lr`, and `initial_lr` is required. The finding is reported at the launch line and names the Python"
    " file and line.",
    remedy="Pass the arguments of Horovod 0.28: `LearningRateWarmupCallback(initial_lr=0.1 * hvd.size(),"
    " warmup_epochs=3)`.",
    bad="srun python train.py  # hvd.callbacks.LearningRateWarmupCallback(lr=0.1)",
    good="srun python train.py  # hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.1)",
)
def horovod_callback_arguments(context: Context) -> Iterator[Violation]:
    """Check the calls of Horovod's callbacks in the Python files that are launched."""
    seen: set[tuple[int, str]] = set()
    for launch in context.script.launches:
        for word in python_files(launch):
            name = context.script.variables.expand(word).text
            if not name or (launch.line, name) in seen:
                continue
            seen.add((launch.line, name))
            source = context.files.text(name)
            for line, message in _wrong_calls(source) if source and "horovod" in source else ():
                yield Violation(launch.line, f"{name}:{line}: {message}")


def _wrong_calls(source: str) -> Iterator[tuple[int, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the file are not reported
            tree = ast.parse(source)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # Python itself reports it
    for call in calls:
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        signature = _CALLBACKS.get(called)
        if signature is not None and (message := _mistake(call, signature)):
            yield call.lineno, f"{called}: {message}"


def _mistake(call: ast.Call, signature: Signature) -> str | None:
    """Return what is wrong with a call; None: nothing, or it is not known (``*args``)."""
    given = [keyword.arg for keyword in call.keywords if keyword.arg]
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if starred or len(given) < len(call.keywords):
        return None
    if unknown := _not_among(signature.names, given):
        return f"no argument {', '.join(unknown)}; it takes {', '.join(signature.names)}"
    missing = _not_among(given, signature.names[len(call.args) : signature.required])
    return f"{', '.join(missing)} is required" if missing else None


def _not_among(known: Sequence[str], names: Sequence[str]) -> list[str]:
    return [name for name in names if name not in known]
