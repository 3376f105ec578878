"""The runner's command line: from the options to the result."""

import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from .allreduce import Comm, resolve_allreduce
from .baseline import measure_alone
from .collective import AgreedError, on_all_ranks, on_rank_0
from .data.epoch_partition import steps_per_epoch
from .data.image_sources import Source, open_source
from .exchange.rank_consistency import agree_on_options
from .launch_environment import launcher_rank
from .option_parser import options_or_help, parse
from .progress_display import TerminalBar, progress_file
from .run_errors import EXIT_FAILED, TrainError
from .run_options import Options
from .run_report import EventLog, Reporter, step_lines, step_warnings
from .run_result import run_result
from .stop_signals import Checkpointed, Interrupted, StopRequest, checkpoint_exit_code
from .training_loop import Training
from .whole_files import prepare_folder, write_whole

_EXIT_INTERRUPTED = 130

_REPORT_S = 20.0
"""Time for the one process that reports: at the first failure a launcher ends all others, with this wait."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on this rank and return its exit code.

    0 trained; 1 training failed or the ranks do not form one job; 2 wrong usage; 3 bad options, data or
    checkpoint; 130 interrupted; 85, or HPCLAUNCH_CHECKPOINT_EXIT_CODE: stopped by a signal, a checkpoint is
    written. Errors that all ranks share are reported once, by rank 0; an error of one rank alone is reported
    by that rank, and ends the other ranks through MPI_Abort.
    """
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    reports = comm.Get_rank() == 0 and not launcher_rank()  # each of several small worlds has a rank 0
    problem = next(filter(None, comm.allgather(_world_problem(comm.Get_size()))), None)
    if problem:
        if reports:
            _complain(problem)
        else:
            time.sleep(_REPORT_S)
        return EXIT_FAILED
    try:
        requested = _requested(comm, argv)
    except AgreedError as agreed:
        if reports:
            _complain(str(agreed.error))
        return agreed.error.exit_code
    if isinstance(requested, str):
        if reports:
            print(requested, end="", flush=True)
        return 0
    options, as_json = requested
    stop = StopRequest()
    stop.listen(writes_checkpoints=options.checkpoint_dir is not None)
    report = _reporter(comm, sys.stderr if as_json else sys.stdout)
    try:
        return _ended(comm, report, lambda: _run(comm, options, stop, report, as_json))
    finally:
        report.clear()


def _ended(comm: Comm, report: Reporter, run: Callable[[], None]) -> int:
    """The exit code of ``run``; what it raises is reported by the rank that has to."""
    from mpi4py import MPI

    first = comm.Get_rank() == 0
    try:
        run()
    except AgreedError as agreed:
        if first:
            report.event("error", {"message": agreed.error.message})
            report.clear()
            _complain(str(agreed.error))
        return agreed.error.exit_code
    except Checkpointed as checkpointed:
        if first:
            report.event("stopped", {"message": str(checkpointed)})
            report.clear()
            _complain(str(checkpointed))
        return checkpoint_exit_code()
    except TrainError as error:  # on this rank alone: the other ranks wait for it and must be ended
        return _abort(comm, error.exit_code, f"rank {comm.Get_rank()}: {error}")
    except (KeyboardInterrupt, Interrupted):
        report.clear()
        return _abort(comm, _EXIT_INTERRUPTED, "interrupted" if first else None)
    except MPI.Exception as error:
        reason = str(error).splitlines()[0]
        message = f"rank {comm.Get_rank()}: MPI failed, maybe because another rank died ({reason})"
        return _abort(comm, EXIT_FAILED, message)
    except Exception:  # likewise, and unforeseen
        return _abort(comm, EXIT_FAILED, f"rank {comm.Get_rank()} failed\n{traceback.format_exc()}")
    return 0


def _requested(comm: Comm, argv: Sequence[str] | None) -> tuple[Options, bool] | str:
    """The options, possible and alike on all ranks, and ``--json``; or the help. Else raises AgreedError."""

    def read() -> tuple[Options, bool]:
        options, as_json = parse(argv)
        options.check()
        checkpoint_exit_code()
        return options, as_json

    requested = options_or_help(comm, read)
    if not isinstance(requested, str):
        agree_on_options(comm, vars(requested[0]))
    return requested


def _reporter(comm: Comm, stream: TextIO) -> Reporter:
    first = comm.Get_rank() == 0
    # A launcher passes whole lines on: no bar goes through it.
    draws = first and launcher_rank() is None and stream.isatty()
    file = progress_file() if first else None
    return Reporter(stream, speaks=first, bar=TerminalBar(stream) if draws else None, file=file)


def _run(comm: Comm, options: Options, stop: StopRequest, report: Reporter, as_json: bool) -> None:
    """Everything between the agreed options and the exit code."""
    result_file: str | None = comm.bcast(os.environ.get("HPCLAUNCH_RESULT_FILE"))
    options = _prepared(comm, options, result_file)
    if (path := options.log_json) is not None:
        on_rank_0(comm, lambda: report.log_to(EventLog(path, goes_on=options.resume)))
    data = on_all_ranks(comm, lambda: _load(comm, options, report))
    images, ranks = len(data.train_labels), comm.Get_size()
    report.line(
        f"training {options.model} on {images:,} images ({data.name}): {ranks} "
        f"rank(s) on {len(set(comm.allgather(platform.node())))} host(s), "
        f"{options.step_images} images per rank and step"
    )
    for line in step_lines(options, ranks, images):
        report.line(line)
    # On one rank: its texts are in a file, which thousands of ranks need not open.
    warnings = on_rank_0(comm, lambda: step_warnings(options, ranks, images))
    for warning in warnings:
        report.line(f"WARNING: {warning}")
    baseline = measure_alone(comm, options, data) if options.baseline else None
    if baseline:
        report.line(f"one rank alone: {baseline.images_per_s:,.0f} images/s in {baseline.steps} steps")
    with Training(comm, options, data, report, stop) as training:
        digests = training.run()
        result = run_result(comm, options, data, training, baseline)
        result |= {"warnings": warnings, "parameters_sha256": digests}
    report.table(result)
    text = json.dumps(result, indent=2, allow_nan=False) + "\n"
    if result_file:
        on_rank_0(comm, lambda: _write_result(Path(result_file), text))
    if as_json and comm.Get_rank() == 0:
        print(text, end="", flush=True)


def _prepared(comm: Comm, options: Options, result_file: str | None) -> Options:
    """The options with the default algorithm for these ranks; the folders of the run exist."""
    if result_file:
        on_rank_0(comm, lambda: prepare_folder(Path(result_file).parent, "HPCLAUNCH_RESULT_FILE"))
    if (folder := options.checkpoint_dir) is not None:
        on_rank_0(comm, lambda: prepare_folder(folder, "--checkpoint-dir"))
    if options.comm == "ring":
        options = replace(options, allreduce=resolve_allreduce(comm, options.allreduce))
    return options


def _load(comm: Comm, options: Options, report: Reporter) -> Source:
    data = open_source(options.reading, options.dataset, options.data_dir, comm, report.line)
    steps = steps_per_epoch(len(data.train_labels), options.step_images, comm.Get_size())
    options.schedule(comm.Get_size()).check(steps)
    return data


def _write_result(path: Path, text: str) -> None:
    try:
        write_whole(path, lambda file: file.write(text.encode()))
    except OSError as error:
        raise TrainError(f"{path}: result not written ({error.strerror or error})") from error


def _world_problem(ranks: int) -> str | None:
    """The message where launcher and MPI do not fit, so that every process would train alone; else None."""
    expected = os.environ.get("HPCLAUNCH_TASKS", "")
    if not expected.isdigit() or ranks >= int(expected):
        return None
    return str(TrainError.of("small world", expected=expected, ranks=ranks))


def _abort(comm: Comm, code: int, message: str | None) -> int:
    """Print ``message``, if there is one, and end all ranks with ``code``; one rank alone returns it."""
    if message:
        _complain(message)
    sys.stdout.flush()
    sys.stderr.flush()
    if comm.Get_size() > 1:
        comm.Abort(code)
    return code


def _complain(message: str) -> None:
    print(f"{__package__}: {message}", file=sys.stderr, flush=True)
