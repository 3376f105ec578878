"""The options of the runner's command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .allreduce import ALLREDUCES
from .collective import AgreedError, on_all_ranks
from .data.dataset import DATASETS
from .data.image_sources import READINGS
from .engine import ENGINES
from .engine.optimizers import OPTIMIZERS
from .exchange import COMMS
from .learning_rate import DECAYS, DEFAULT_WARMUP_EPOCHS, SCALINGS
from .run_errors import UsageError
from .run_options import DEFAULT_LR, DEFAULT_OPTIMIZER, OVERLAP_FUSION_BYTES, Options

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")
Add = Callable[..., Any]
"""`argparse.ArgumentParser.add_argument`."""


class HelpRequested(Exception):
    """``--help``; its text is the message."""


class QuietParser(argparse.ArgumentParser):
    """Raises what argparse prints: the ranks agree on it before one of them prints it.

    Raises UsageError with the usage and the reason, and HelpRequested.
    """

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message}\n{self.format_usage().rstrip()}")

    def print_help(self, file: object = None) -> NoReturn:
        """Raise HelpRequested."""
        raise HelpRequested(self.format_help())


def options_or_help(comm: MPI.Intracomm, read: Callable[[], T]) -> T | str:
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
    """Options from the command line, and whether the result is printed as JSON.

    Raises UsageError and HelpRequested.
    """
    package = __package__ or "train"
    parser = QuietParser(
        prog=f"python -m {package}",
        description="Train a classifier of handwritten digits on all ranks of an MPI job.",
        epilog=f"Example: mpiexec -n 2 python -m {package} --model mlp --epochs 3 --json",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    default = Options()
    groups = {
        "data": _add_data,
        "training": _add_training,
        "learning rate": _add_learning_rate,
        "ranks": _add_ranks,
        "checkpoints": _add_checkpoints,
        "output": _add_output,
    }
    for title, add_options in groups.items():
        add_options(parser.add_argument_group(title).add_argument, default)
    given = vars(parser.parse_args(argv))
    as_json = given.pop("json", False)
    if given["comm"] != "horovod":  # Horovod reads its variables itself
        _take_from_environment(given, os.environ, parser)
    if given["overlap"]:
        given.setdefault("fusion_bytes", OVERLAP_FUSION_BYTES)
    given.setdefault("optimizer", DEFAULT_OPTIMIZER[given["model"]])
    given.setdefault("lr", DEFAULT_LR[given["model"], given["optimizer"]])
    return Options(**given), as_json


def _add_data(add: Add, default: Options) -> None:
    data = "folder with MNIST's four IDX files; variables are expanded, such as '$HPCLAUNCH_STAGED'"
    add("--data", dest="data_dir", type=_expanded, metavar="DIR", help=data)
    add("--dataset", choices=DATASETS, default=default.dataset, help="auto: synthetic without network")
    add("--reading", choices=READINGS, default=default.reading, help="how images come from files to ranks")
    add(
        "--prefetch",
        action=argparse.BooleanOptionalAction,
        help="prepare batches in a thread (default: with --reading shard)",
    )


def _expanded(text: str) -> Path:
    """The path on this node: what is staged there is known to the job only."""
    return Path(os.path.expandvars(text))


def _add_training(add: Add, default: Options) -> None:
    add("--model", choices=sorted(DEFAULT_OPTIMIZER), default=default.model, help="network to train")
    add("--engine", choices=sorted(ENGINES), default=default.engine, help="what computes")
    add("--optimizer", choices=sorted(OPTIMIZERS), help="update rule (default: the model's)")
    add("--epochs", type=int, default=default.epochs, help="passes over the training images")
    add("--batch-size", type=int, default=default.batch_size, help="images that a rank computes at once")
    batches = "batches of that size per rank and step"
    add("--accumulate", type=int, default=default.accumulate, metavar="N", help=batches)
    add("--target-accuracy", type=float, metavar="SHARE", help="stop at this test accuracy, such as 0.99")
    add("--seed", type=int, default=default.seed, help="of parameters, order and dropout")
    same = "give the same options and ranks the same bits, or refuse"
    add("--deterministic", action="store_true", help=same)


def _add_learning_rate(add: Add, default: Options) -> None:
    add("--lr", type=float, help="learning rate of one rank (default: fits model and optimizer)")
    scaling = "factor of --lr: 1, the ranks, or their square root"
    add("--lr-scaling", choices=SCALINGS, default=default.lr_scaling, help=scaling)
    warmup = "epochs from --lr to the scaled rate (default: a third of --epochs, at most "
    warmup += f"{DEFAULT_WARMUP_EPOCHS:g}, less with --decay step; 0 without --lr-scaling)"
    add("--warmup-epochs", type=float, metavar="N", help=warmup)
    add("--decay", choices=DECAYS, default=default.decay, help="how the rate falls after the warm-up")


def _add_ranks(add: Add, default: Options) -> None:
    comm = "what exchanges gradients; ring: our own exchange, with --allreduce"
    add("--comm", choices=sorted(COMMS), default=default.comm, help=comm)
    where = "algorithm between ranks (default: ring; hierarchical on several nodes)"
    add("--allreduce", choices=sorted(ALLREDUCES), help=where)
    add("--compression", default=default.compression, help="how gradients are sent: none, fp16 or bf16")
    fusion = "gradients of neighbouring tensors share a message up to this size; 0: one message per tensor"
    fusion += f" (default: HOROVOD_FUSION_THRESHOLD, {OVERLAP_FUSION_BYTES} with --overlap, else "
    fusion += f"{default.fusion_bytes})"
    add("--fusion-bytes", type=int, metavar="BYTES", help=fusion)
    overlap = "send gradients while those of earlier layers are computed"
    add("--overlap", action=argparse.BooleanOptionalAction, default=default.overlap, help=overlap)


def _add_checkpoints(add: Add, default: Options) -> None:
    add("--checkpoint-dir", type=Path, metavar="DIR", help="write a checkpoint there after each epoch")
    add("--checkpoint-every", type=int, metavar="STEPS", help="and after each such number of steps")
    add("--keep", type=int, default=default.keep, help="newest checkpoints of a run that stay")
    best = "also keep the checkpoint of the epoch with the highest test accuracy (best.npz)"
    add("--keep-best", action="store_true", help=best)
    add("--resume", action="store_true", help="continue from the newest checkpoint, if there is one")


def _add_output(add: Add, default: Options) -> None:
    add("--baseline", action="store_true", help="measure one rank alone first; report the scaling efficiency")
    add("--log-json", type=Path, metavar="FILE", help="write events, one JSON document per line")
    add("--timeline", type=Path, metavar="FILE", help="write a Chrome trace (default: HOROVOD_TIMELINE)")
    add("--timeline-ranks", choices=("0", "all"), default=default.timeline_ranks, help="whose events")
    add("--timeline-steps", type=int, metavar="N", help="how many steps are on it (default: all)")
    first = "steps before the first that is on it"
    add("--timeline-after", type=int, default=default.timeline_after, metavar="N", help=first)
    add("--json", action="store_true", help="print the result as one JSON document, all else to stderr")


def _take_from_environment(
    given: dict[str, Any], environment: Mapping[str, str], parser: argparse.ArgumentParser
) -> None:
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
            parser.error(f"{variable}={value}: not a number")
