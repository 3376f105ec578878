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
from typing import TYPE_CHECKING

from .allreduce import resolve_allreduce
from .baseline import measure_alone
from .collective import AgreedError, on_all_ranks, on_rank_0
from .data.epoch_partition import images_per_rank
from .data.image_sources import Source, open_source
from .exchange.rank_consistency import agree_on_options
from .launch_environment import ends_on_terminal, launcher_rank
from .option_parser import parse
from .run_errors import EXIT_FAILED, TrainError
from .run_options import Options
from .run_report import EventLog, Reporter
from .run_result import run_result
from .stop_signals import Checkpointed, Interrupted, StopRequest, checkpoint_exit_code
from .training_loop import Training
from .whole_files import prepare_folder, write_whole

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
    stop.listen(writes_checkpoints=options.checkpoint_dir is not None)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    problem = _world_problem(comm.Get_size())
    if problem:
        if comm.Get_rank() == 0 and not launcher_rank():  # each of the small worlds has a rank 0
            _complain(problem)
        return EXIT_FAILED
    stream = sys.stderr if as_json else sys.stdout
    report = Reporter(stream, speaks=comm.Get_rank() == 0, live=ends_on_terminal(stream))
    try:
        _run(comm, options, stop, report, as_json=as_json)
    except AgreedError as agreed:
        if comm.Get_rank() == 0:
            report.event("error", {"message": agreed.error.message})
            _complain(str(agreed.error))
        return agreed.error.exit_code
    except Checkpointed as checkpointed:
        if comm.Get_rank() == 0:
            report.event("stopped", {"message": str(checkpointed)})
            _complain(str(checkpointed))
        return checkpoint_exit_code()
    except TrainError as error:  # one rank alone: the others wait for it and must be ended
        _complain(f"rank {comm.Get_rank()}: {error}")
        return _abort(comm, error.exit_code)
    except (KeyboardInterrupt, Interrupted):
        if comm.Get_rank() == 0:
            _complain("interrupted")
        return _abort(comm, _EXIT_INTERRUPTED)
    except MPI.Exception as error:
        reason = str(error).splitlines()[0]
        _complain(f"rank {comm.Get_rank()}: MPI failed, maybe because another rank died ({reason})")
        return _abort(comm, EXIT_FAILED)
    except Exception:  # likewise, and unforeseen
        _complain(f"rank {comm.Get_rank()} failed\n{traceback.format_exc()}")
        return _abort(comm, EXIT_FAILED)
    return 0


def _run(
    comm: MPI.Intracomm, options: Options, stop: StopRequest, report: Reporter, *, as_json: bool
) -> None:
    """Everything between the start of MPI and the exit code."""
    result_file = os.environ.get("HPCLAUNCH_RESULT_FILE")
    options = _agreed(comm, options, result_file)
    if (path := options.log_json) is not None:
        on_rank_0(comm, lambda: report.keep(EventLog(path, goes_on=options.resume)))
    data = on_all_ranks(comm, lambda: _load(comm, options, report))
    report.line(
        f"training {options.model} on {len(data.train_labels):,} images ({data.name}): {comm.Get_size()} "
        f"rank(s) on {len(set(comm.allgather(platform.node())))} host(s), "
        f"{options.step_images} images a rank and step"
    )
    baseline = measure_alone(comm, options, data) if options.baseline else None
    if baseline:
        report.line(f"one rank alone: {baseline.images_per_s:,.0f} images/s in {baseline.steps} steps")
    with Training(comm, options, data, report, stop) as training:
        digests = training.run()
        result = run_result(comm, options, data, training, baseline) | {"parameters_sha256": digests}
    report.table(result)
    text = json.dumps(result, indent=2, allow_nan=False) + "\n"
    if result_file:
        on_rank_0(comm, lambda: _keep_result(Path(result_file), text))
    if as_json and comm.Get_rank() == 0:
        print(text, end="", flush=True)


def _agreed(comm: MPI.Intracomm, options: Options, result_file: str | None) -> Options:
    """The options, alike on all ranks and known to be possible."""
    on_all_ranks(comm, options.check)
    agree_on_options(comm, options)
    on_all_ranks(comm, checkpoint_exit_code)
    if result_file:
        on_rank_0(comm, lambda: prepare_folder(Path(result_file).parent, "HPCLAUNCH_RESULT_FILE"))
    if options.comm == "ring":
        resolved = resolve_allreduce(comm, options.allreduce, options.compression)
        options = replace(options, allreduce=resolved)
    return options


def _load(comm: MPI.Intracomm, options: Options, report: Reporter) -> Source:
    data = open_source(options.reading, options.dataset, options.data_dir, comm, report.line)
    images_per_rank(len(data.train_labels), options.step_images, comm.Get_size())  # refuses too many ranks
    return data


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
