"""The options of the runner's command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .allreduce import ALLREDUCES
from .data.dataset import DATASETS
from .data.image_sources import READINGS
from .engine import ENGINES
from .engine.optimizers import OPTIMIZERS
from .exchange import COMMS
from .launch_environment import launcher_rank
from .learning_rate import DECAYS, DEFAULT_WARMUP_EPOCHS, SCALINGS
from .run_options import DEFAULT_LR, DEFAULT_OPTIMIZER, OVERLAP_FUSION_BYTES, Options

Add = Callable[..., Any]
"""`argparse.ArgumentParser.add_argument`."""


def parse(argv: Sequence[str] | None) -> tuple[Options, bool]:
    """Options from the command line, and whether the result is printed as JSON; usage errors exit with 2."""
    package = __package__ or "train"
    parser = _Parser(
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
        "ranks": _add_ranks,
        "checkpoints": _add_checkpoints,
        "output": _add_output,
    }
    for title, add_options in groups.items():
        add_options(parser.add_argument_group(title).add_argument, default)
    given = vars(parser.parse_args(argv))
    as_json = given.pop("json", False)
    if given["comm"] != "horovod":  # which reads them itself
        _take_from_environment(given, os.environ, parser)
    if given["overlap"]:
        given.setdefault("fusion_bytes", OVERLAP_FUSION_BYTES)
    given.setdefault("optimizer", DEFAULT_OPTIMIZER[given["model"]])
    given.setdefault("lr", DEFAULT_LR[given["model"], given["optimizer"]])
    return Options(**given), as_json


def _add_data(add: Add, default: Options) -> None:
    add("--data", dest="data_dir", type=Path, metavar="DIR", help="folder with MNIST's four IDX files")
    add("--dataset", choices=DATASETS, default=default.dataset, help="auto: synthetic without network")
    add("--reading", choices=READINGS, default=default.reading, help="how images come from files to ranks")
    add(
        "--prefetch",
        action=argparse.BooleanOptionalAction,
        help="gather batches ahead in a thread (default: with --reading shard)",
    )


def _add_training(add: Add, default: Options) -> None:
    add("--model", choices=sorted(DEFAULT_OPTIMIZER), default=default.model, help="network to train")
    add("--engine", choices=sorted(ENGINES), default=default.engine, help="what computes")
    add("--optimizer", choices=sorted(OPTIMIZERS), help="update rule (default: the model's)")
    add("--lr", type=float, help="learning rate (default: fits model and optimizer)")
    add("--lr-scaling", choices=SCALINGS, default=default.lr_scaling, help="how --lr grows with the ranks")
    warmup = f"epochs from --lr to the scaled rate (default: {DEFAULT_WARMUP_EPOCHS:g} with --lr-scaling)"
    add("--warmup-epochs", type=float, metavar="N", help=warmup)
    add("--decay", choices=DECAYS, default=default.decay, help="how the rate falls after the warm-up")
    add("--epochs", type=int, default=default.epochs, help="passes over the training images")
    add("--batch-size", type=int, default=default.batch_size, help="images that a rank computes at once")
    add(
        "--accumulate", type=int, default=default.accumulate, metavar="N", help="such batches a rank and step"
    )
    add("--target-accuracy", type=float, metavar="SHARE", help="stop when the test accuracy is that, as 0.99")
    add("--seed", type=int, default=default.seed, help="of parameters, order and dropout")
    add("--deterministic", action="store_true", help="same options and ranks, same bits, or a refusal")


def _add_ranks(add: Add, default: Options) -> None:
    add("--comm", choices=sorted(COMMS), default=default.comm, help="whose gradient exchange; ring: our own")
    where = "algorithm between ranks (default: ring; hierarchical on several nodes)"
    add("--allreduce", choices=sorted(ALLREDUCES), help=where)
    what = "how gradients travel: none, fp16, bf16, or topk:SHARE of the numbers, the largest"
    add("--compression", default=default.compression, help=what)
    fusion = "gradients of neighbouring tensors share a message up to so many bytes; 0: each its own"
    fusion += f" (default: HOROVOD_FUSION_THRESHOLD, {OVERLAP_FUSION_BYTES} with --overlap, else "
    fusion += f"{default.fusion_bytes})"
    add("--fusion-bytes", type=int, metavar="BYTES", help=fusion)
    overlap = "send gradients while those of earlier layers are computed"
    add("--overlap", action=argparse.BooleanOptionalAction, default=default.overlap, help=overlap)
    cycle = "with --overlap: agree so often on what is ready on all ranks (default: HOROVOD_CYCLE_TIME)"
    add("--cycle-ms", type=float, metavar="MS", help=cycle)


def _add_checkpoints(add: Add, default: Options) -> None:
    add("--checkpoint-dir", type=Path, metavar="DIR", help="write checkpoints there, one an epoch")
    add("--checkpoint-every", type=int, metavar="STEPS", help="and one every so many steps")
    add("--keep", type=int, default=default.keep, help="checkpoints of a run that stay")
    add("--resume", action="store_true", help="continue from the newest checkpoint, if there is one")


def _add_output(add: Add, default: Options) -> None:
    add("--baseline", action="store_true", help="measure one rank alone first; report the scaling efficiency")
    add("--log-json", type=Path, metavar="FILE", help="write what happens, one JSON document a line")
    add("--timeline", type=Path, metavar="FILE", help="write a Chrome trace (default: HOROVOD_TIMELINE)")
    add("--timeline-ranks", choices=("0", "all"), default=default.timeline_ranks, help="whose events")
    add("--json", action="store_true", help="print the result as one JSON document, all else to stderr")


def _take_from_environment(
    given: dict[str, Any], environment: Mapping[str, str], parser: argparse.ArgumentParser
) -> None:
    """What users of Horovod have set holds where the option is not given."""
    for variable, name, kind in (
        ("HOROVOD_TIMELINE", "timeline", Path),
        ("HOROVOD_FUSION_THRESHOLD", "fusion_bytes", int),
        ("HOROVOD_CYCLE_TIME", "cycle_ms", float),
    ):
        value = environment.get(variable)
        # Horovod's timeline called DYNAMIC begins when a program says so; its cycles overlap by nature.
        if not value or name in given or value == "DYNAMIC" or (name == "cycle_ms" and not given["overlap"]):
            continue
        try:
            given[name] = kind(value)
        except ValueError:
            parser.error(f"{variable}={value}: not a number")


class _Parser(argparse.ArgumentParser):
    """Says a usage error once, not once a rank; exits with 2."""

    def error(self, message: str) -> NoReturn:
        if not launcher_rank():
            super().error(message)
        sys.exit(2)
