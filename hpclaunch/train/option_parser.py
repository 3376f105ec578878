"""The options of the runner's command line: the rows of ``options.json``."""

import argparse
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from .allreduce import ALLREDUCES, Comm
from .collective import AgreedError, on_all_ranks
from .data.dataset import DATASETS
from .data.image_sources import READINGS
from .engine import ENGINES
from .engine.optimizers import OPTIMIZERS
from .exchange import COMMS
from .learning_rate import DECAYS, DEFAULT_WARMUP_EPOCHS, SCALINGS, default_warmup
from .run_errors import BadRequestError, UsageError
from .run_options import DEFAULT_LR, DEFAULT_OPTIMIZER, OVERLAP_FUSION_BYTES, Options

T = TypeVar("T")

_GONE = ". auto is gone: `hpclaunch bench` measures each; without --allreduce there is a default"


class HelpRequested(Exception):
    """``--help``; its text is the message."""


class QuietParser(argparse.ArgumentParser):
    """Raises UsageError or HelpRequested with the text: the ranks agree on it before one prints it."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        gone = _GONE if message.startswith("argument --allreduce: invalid choice: 'auto'") else ""
        raise UsageError(f"{message}{gone}\n{self.format_usage().rstrip()}")

    def print_help(self, file: object = None) -> NoReturn:
        """Raise HelpRequested."""
        raise HelpRequested(self.format_help())


def options_or_help(comm: Comm, read: Callable[[], T]) -> T | str:
    """Return the result of ``read`` on this rank, or the help text that all ranks want; all ranks call it."""

    def asked() -> T | str:
        try:
            return read()
        except HelpRequested as help_text:
            return str(help_text)

    requested = on_all_ranks(comm, asked)
    kinds = comm.allgather(isinstance(requested, str))
    if any(kinds) != all(kinds):
        raise AgreedError(UsageError(f"--help is on rank {kinds.index(True)} only", "Start all ranks alike."))
    return requested


def parse(argv: Sequence[str] | None) -> tuple[Options, bool]:
    """Options from the command line, and whether JSON is printed. Raises UsageError and HelpRequested."""
    package = __package__ or "train"
    parser = QuietParser(
        prog=f"python -m {package}",
        description="Train a classifier of handwritten digits on all ranks of an MPI job.",
        epilog=f"Example: mpiexec -n 2 python -m {package} --model mlp --epochs 3 --json",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    groups = json.loads(Path(__file__).with_name("options.json").read_text())
    for title, rows in groups.items():
        group = parser.add_argument_group(title)
        for option, row in rows.items():
            group.add_argument(option, **_keywords(option, row, Options()))
    given = vars(parser.parse_args(argv))
    as_json = given.pop("json", False)
    if given["comm"] != "horovod":  # Horovod reads its variables itself
        _take_from_environment(given, os.environ)
    if given["overlap"]:
        given.setdefault("fusion_bytes", OVERLAP_FUSION_BYTES)
    given.setdefault("optimizer", DEFAULT_OPTIMIZER[given["model"]])
    if not given.keys() & {"lr", "lr_scaling"}:
        # Loses nothing on MNIST (measured.md); a run that resumes with more epochs has the same bits.
        given["lr_scaling"] = "sqrt"
        given.setdefault("warmup_epochs", min(1 / 3, default_warmup(given["epochs"], given["decay"])))
    given.setdefault("lr", DEFAULT_LR[given["optimizer"]])
    return Options(**given), as_json


_CHOICES = {
    "datasets": DATASETS,
    "readings": READINGS,
    "models": sorted(DEFAULT_OPTIMIZER),
    "engines": sorted(ENGINES),
    "optimizers": sorted(OPTIMIZERS),
    "scalings": SCALINGS,
    "decays": DECAYS,
    "comms": sorted(COMMS),
    "allreduces": sorted(ALLREDUCES),
    "timeline ranks": ("0", "all"),
}
_TYPES: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "path": Path,
    # The path on this node: what is staged there is known to the job only.
    "expanded": lambda text: Path(os.path.expandvars(text)),
}


def _keywords(option: str, row: dict[str, Any], default: Options) -> dict[str, Any]:
    """Return a row's keywords as argparse takes them; ``default`` true: that of `Options`."""
    words = dict(row)
    numbers = {"warmup": DEFAULT_WARMUP_EPOCHS, "overlapping": OVERLAP_FUSION_BYTES, "default": default}
    words["help"] = words["help"].format(**numbers)
    for key, known in (("choices", _CHOICES), ("type", _TYPES)):
        if key in words:
            words[key] = known[words[key]]
    if words.get("action") == "switch":
        words["action"] = argparse.BooleanOptionalAction
    if "default" in words:
        words["default"] = getattr(default, option[2:].replace("-", "_"))
    return words


def _take_from_environment(given: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Use the variables of Horovod where the option is not given."""
    for variable, name, kind in (
        ("HOROVOD_TIMELINE", "timeline", Path),
        ("HOROVOD_FUSION_THRESHOLD", "fusion_bytes", int),
    ):
        value = environment.get(variable)
        # Horovod's timeline called DYNAMIC begins when a program starts it.
        if not value or name in given or value == "DYNAMIC":
            continue
        try:
            given[name] = kind(value)
        except ValueError:
            raise BadRequestError(f"{variable}={value}: not a number", "Unset it, or give bytes.") from None
