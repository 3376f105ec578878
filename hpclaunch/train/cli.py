"""The runner's command line: options in, a trained model and its result out."""

from __future__ import annotations

import json
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mpi4py
import numpy as np

from .allreduce import resolve_allreduce
from .arguments import parse
from .collective import AgreedError, largest, on_rank_0, together
from .data.reading import Source, open_source
from .data.shard import images_per_rank
from .engine import Engine
from .errors import EXIT_FAILED, TrainError
from .exchange import Exchange
from .exchange.agreement import agree_on_options
from .files import prepare_folder, write_whole
from .launcher import launcher_rank, threads_per_rank
from .loop import Training
from .options import Options
from .report import Reporter
from .signals import Checkpointed, Interrupted, StopRequest, checkpoint_exit_code

if TYPE_CHECKING:
    from mpi4py import MPI

_EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on this rank and return its exit code (argparse exits with 2 by itself).

    0 trained; 1 training failed or the ranks do not form one job; 3 bad options, data or checkpoint;
    130 interrupted; 85, or what HPCLAUNCH_CHECKPOINT_EXIT_CODE says: stopped by a signal, a checkpoint is
    written. Errors that all ranks share are said once, by rank 0; an error of one rank alone is said
    by that rank, and ends the others through MPI_Abort.
    """
    options, as_json = parse(argv)
    stop = StopRequest()
    stop.listen(keeps_checkpoints=options.checkpoint_dir is not None)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    problem = _world_problem(comm.Get_size())
    if problem:
        if comm.Get_rank() == 0 and not launcher_rank():  # each of the small worlds has a rank 0
            _complain(problem)
        return EXIT_FAILED
    try:
        _run(comm, options, stop, as_json=as_json, library=MPI.Get_library_version())
    except AgreedError as agreed:
        if comm.Get_rank() == 0:
            _complain(str(agreed.error))
        return agreed.error.exit_code
    except Checkpointed as checkpointed:
        if comm.Get_rank() == 0:
            _complain(str(checkpointed))
        return checkpoint_exit_code()
    except TrainError as error:  # one rank alone: the others wait for it and must be ended
        _complain(f"rank {comm.Get_rank()}: {error}")
        return _abort(comm, error.exit_code)
    except (KeyboardInterrupt, Interrupted):
        if comm.Get_rank() == 0:
            _complain("interrupted")
        return _abort(comm, _EXIT_INTERRUPTED)
    except Exception:  # likewise, and unforeseen
        _complain(f"rank {comm.Get_rank()} failed\n{traceback.format_exc()}")
        return _abort(comm, EXIT_FAILED)
    return 0


def _run(comm: MPI.Intracomm, options: Options, stop: StopRequest, *, as_json: bool, library: str) -> None:
    """Everything between the start of MPI and the exit code."""
    stream = sys.stderr if as_json else sys.stdout
    # Open MPI gives its ranks terminals of their own, so one says nothing about where the lines end up.
    live = stream.isatty() and launcher_rank() is None
    report = Reporter(stream, speaks=comm.Get_rank() == 0, live=live)
    result_file = os.environ.get("HPCLAUNCH_RESULT_FILE")
    together(comm, options.check)
    agree_on_options(comm, options)
    together(comm, checkpoint_exit_code)
    if result_file:
        on_rank_0(comm, lambda: prepare_folder(Path(result_file).parent, "HPCLAUNCH_RESULT_FILE"))
    if options.comm == "ring":
        resolved = resolve_allreduce(comm, options.allreduce, options.compression)
        options = replace(options, allreduce=resolved)
    data = together(comm, lambda: _load(comm, options, report))
    with Training(comm, options, data, report, stop) as training:
        hosts = list(dict.fromkeys(comm.allgather(platform.node())))
        report.line(
            f"training {options.model} on {len(data.train_labels):,} images ({data.name}): "
            f"{comm.Get_size()} rank(s) on {len(hosts)} host(s), {options.step_images} images a rank and step"
        )
        digests = training.run()
        facts = {
            "hosts": hosts,
            "parameters_sha256": digests,
            "versions": _versions(library, training.engine),
        }
        result = _result(comm, options, data, training) | facts
    report.table(result)
    text = json.dumps(result, indent=2, allow_nan=False) + "\n"
    if result_file:
        on_rank_0(comm, lambda: _keep_result(Path(result_file), text))
    if as_json and comm.Get_rank() == 0:
        print(text, end="", flush=True)


def _load(comm: MPI.Intracomm, options: Options, report: Reporter) -> Source:
    data = open_source(options.reading, options.dataset, options.data_dir, comm, report.line)
    images_per_rank(len(data.train_labels), options.step_images, comm.Get_size())  # refuses too many ranks
    return data


def _result(comm: MPI.Intracomm, options: Options, data: Source, training: Training) -> dict[str, Any]:
    """The facts of the run, for a record; the same on all ranks but for their clocks."""
    clock, position, ranks = training.clock, training.position, comm.Get_size()
    training_s = largest(comm, clock.training)
    communication_s = sum(comm.allgather(training.exchange.communication_s)) / ranks
    data_s = sum(comm.allgather(clock.data)) / ranks
    last = position.history[-1]
    return {
        "dataset": data.name,
        "dataset_source": data.source,
        "model": options.model,
        "parameters": training.engine.gradients.size,
        "optimizer": options.optimizer,
        "lr": options.lr,
        "lr_scaling": options.lr_scaling,
        "warmup_epochs": options.schedule(ranks).warmup_epochs,
        "decay": options.decay,
        "batch_size": options.batch_size,
        "accumulate": options.accumulate,
        "images_per_step": training.images_per_step,
        "seed": options.seed,
        "deterministic": options.deterministic,
        "engine": options.engine,
        "device": training.engine.device,
        "comm": options.comm,
        "ranks": ranks,
        "threads_per_rank": threads_per_rank(),
        "reading": options.reading,
        "prefetch": options.prefetches,
        "allreduce": options.allreduce if options.comm == "ring" else None,
        "compression": options.compression,
        "epochs": options.epochs,
        "steps": position.step,
        "resumed_from_step": training.resumed_from_step,
        "train_images": len(data.train_labels),
        "train_images_per_rank": images_per_rank(len(data.train_labels), options.step_images, ranks),
        "test_images": len(data.test_labels),
        "test_accuracy": last["test_accuracy"],
        "test_loss": last["test_loss"],
        "target_accuracy": options.target_accuracy,
        "seconds_to_target_accuracy": position.elapsed_s if training.reached_target() else None,
        "history": position.history,
        "images_per_s": training.images_seen / max(training_s, 1e-9),
        "seconds": {
            "training": training_s,
            "compute": training_s - communication_s - data_s,
            "communication": communication_s,
            "data": data_s,
            "waiting": training.waiting_s(),
            "evaluation": largest(comm, clock.evaluation),
            "checkpoints": largest(comm, clock.checkpoints),
        },
        "gradient_bytes": training.engine.gradients.nbytes,
        "bytes_sent_per_rank": _sent_by_a_rank(comm, training.exchange),
    }


def _sent_by_a_rank(comm: MPI.Intracomm, exchange: Exchange) -> int | None:
    """Gradient bytes of the rank that sent most; None: not known."""
    sent = exchange.bytes_sent
    most: int | None = None if sent is None else largest(comm, sent)
    return most


def _versions(library: str, engine: Engine) -> dict[str, str]:
    """Versions of all that a result may depend on."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mpi4py": mpi4py.__version__,
        "mpi": library.strip("\0\n ").splitlines()[0],
        **engine.versions,
    }


def _keep_result(path: Path, text: str) -> None:
    try:
        write_whole(path, lambda file: file.write(text.encode()))
    except OSError as error:
        raise TrainError(f"{path}: result not written ({error.strerror or error})") from error


def _world_problem(ranks: int) -> str | None:
    """What is wrong where launcher and MPI do not understand each other: every process would train alone."""
    expected = os.environ.get("HPCLAUNCH_TASKS", "")
    if not expected.isdigit() or ranks >= int(expected):
        return None
    return (
        f"the job starts {expected} tasks, but this MPI sees {ranks} rank(s): each process believes that it "
        "is alone, or almost\n  The launcher and mpi4py's MPI library do not fit: use the launcher of that "
        "library, or the PMI plugin that it speaks (srun --mpi=list shows them)."
    )


def _abort(comm: MPI.Intracomm, code: int) -> int:
    """End all ranks with ``code``; a rank that is alone just returns it."""
    sys.stdout.flush()
    sys.stderr.flush()
    if comm.Get_size() > 1:
        comm.Abort(code)
    return code


def _complain(message: str) -> None:
    print(f"{__package__}: {message}", file=sys.stderr, flush=True)
