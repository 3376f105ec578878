"""The facts of a finished run, for its table, its JSON and a record."""

import contextlib
import platform
import resource
from pathlib import Path
from typing import Any

import mpi4py
import numpy as np

from .allreduce import Comm
from .baseline import Baseline
from .checkpoint import BEST
from .collective import largest
from .data.epoch_partition import images_per_rank
from .data.image_sources import Source
from .launch_environment import threads_per_rank
from .run_options import Options
from .training_loop import Training


def run_result(
    comm: Comm, options: Options, data: Source, training: Training, baseline: Baseline | None
) -> dict[str, Any]:
    """The same on all ranks; collective, before the training is closed."""
    device: list[int | None] = comm.allgather(training.engine.peak_device_bytes)
    known = [nbytes or 0 for nbytes in device] if any(device) else None
    return {
        **_requested(comm, options, data, training),
        **_reached(options, training),
        **_speed(comm, training, baseline),
        "peak_memory_bytes": {"host": comm.allgather(peak_host_bytes()), "device": known},
        "hosts": list(dict.fromkeys(comm.allgather(platform.node()))),
        "versions": {**run_versions(), **training.engine.versions},
    }


_OPTIONS = (
    *("model", "optimizer", "lr", "lr_scaling", "decay", "batch_size", "accumulate", "epochs", "seed"),
    *("deterministic", "engine", "comm", "compression", "fusion_bytes", "overlap", "reading"),
)


def _requested(comm: Comm, options: Options, data: Source, training: Training) -> dict[str, Any]:
    """How it ran."""
    ranks = comm.Get_size()
    schedule = options.schedule(ranks)
    return {
        "dataset": data.name,
        "dataset_source": data.source,
        **{name: getattr(options, name) for name in _OPTIONS},
        "parameters": training.engine.gradients.size,
        "lr_scaled": schedule.peak,
        "warmup_epochs": schedule.warmup_epochs,
        "images_per_step": training.images_per_step,
        "steps_per_epoch": training.steps_per_epoch,
        "device": training.engine.device,
        "ranks": ranks,
        "threads_per_rank": threads_per_rank(),
        "prefetch": options.prefetches,
        "allreduce": options.allreduce if options.comm == "ring" else None,
        "train_images": len(data.train_labels),
        "train_images_per_rank": images_per_rank(len(data.train_labels), options.step_images, ranks),
        "test_images": len(data.test_labels),
    }


def _reached(options: Options, training: Training) -> dict[str, Any]:
    position = training.position
    last, best = position.history[-1], training.best_epoch()
    assert best is not None  # noqa: S101
    return {
        "steps": position.step,
        "resumed_from_step": training.resumed_from_step,
        "test_accuracy": last["test_accuracy"],
        "test_loss": last["test_loss"],
        "best_epoch": best["epoch"],
        "best_test_accuracy": best["test_accuracy"],
        "best_checkpoint": str(options.checkpoint_dir / BEST)
        if options.keep_best and options.checkpoint_dir
        else None,
        "target_accuracy": options.target_accuracy,
        "seconds_to_target_accuracy": position.elapsed_s if training.reached_target() else None,
        "history": position.history,
    }


def _speed(comm: Comm, training: Training, baseline: Baseline | None) -> dict[str, Any]:
    """Where the time went since the start or the resume: seconds are of the mean rank, or of the slowest."""
    clock, exchange, ranks = training.clock, training.exchange, comm.Get_size()
    allreduce = exchange.allreduce  # the same on all ranks
    training_s = largest(comm, clock.training)
    communication_s = sum(comm.allgather(exchange.communication_s)) / ranks
    data_s = sum(comm.allgather(clock.data)) / ranks
    hidden: list[float | None] = comm.allgather(exchange.overlapped_s)
    known = [seconds for seconds in hidden if seconds is not None]
    seconds = {
        "training": training_s,
        "compute": training_s - communication_s - data_s,
        "communication": communication_s,
        "waiting": training.waiting_s(),
        "overlapped": sum(known) / ranks if len(known) == ranks else None,
        "data": data_s,
        "choosing": 0.0,  # this key and allreduce_choices are of --allreduce auto, which is gone
        "evaluation": largest(comm, clock.evaluation),
        "checkpoints": largest(comm, clock.checkpoints),
    }
    by_rank = [
        images / max(own_s, 1e-9) for images, own_s in comm.allgather((training.own_images, clock.training))
    ]
    images_per_s = training.images_seen / max(training_s, 1e-9)
    return {
        "images_per_s": images_per_s,
        "images_per_s_by_rank": by_rank,
        "images_per_s_of_a_rank": sum(by_rank) / ranks,
        "seconds": seconds,
        "step_deviation_s": training.step_deviation_s(),
        "gradient_bytes": training.engine.gradients.nbytes,
        "bytes_sent_per_rank": largest(comm, allreduce.bytes_sent) if allreduce else None,
        "messages_per_step": training.messages_per_step(),
        "allreduce_choices": {},
        "bus_gb_s": training.bus_gb_s(),
        "baseline": baseline._asdict() if baseline else None,
        "scaling_efficiency": images_per_s / (ranks * baseline.images_per_s) if baseline else None,
    }


def run_versions() -> dict[str, str]:
    """Versions that every result depends on; an engine may add others."""
    from mpi4py import MPI

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mpi4py": mpi4py.__version__,
        "mpi": MPI.Get_library_version().strip("\0\n ").splitlines()[0],
    }


def peak_host_bytes() -> int:
    """The most host memory that this process has had at once, memory that ranks share included."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        # Unlike ru_maxrss, it does not count what the process was before exec (proc(5), VmHWM).
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
