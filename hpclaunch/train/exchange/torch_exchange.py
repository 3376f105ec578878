"""Exchanges of other projects, so that the same training can be compared: torch's own DDP, and Horovod.

Both sum during back-propagation, in messages that they choose, with their own default settings. From outside
only the time from the last gradient to the last sum can be measured.
"""

import os
import socket
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

import torch

from ..allreduce import Comm
from ..collective import on_all_ranks, on_rank_0
from ..engine import Engine, Images, Labels, Sums
from ..engine.torch_engine import TorchEngine
from ..run_errors import BadRequestError, TrainError
from ..run_options import Options
from ..timeline_writer import Timeline
from . import Exchange, MicroBatch, micro_batches
from .tensor_fusion import Bucket, Phases

_RENDEZVOUS_S = 120


class TorchExchange(Exchange):
    """The base of the exchanges: micro-batches, the clock, the timeline."""

    def __init__(self, comm: Comm, options: Options, engine: Engine, timeline: Timeline | None) -> None:
        """Set the other project's exchange up; collective. Raises AgreedError where it does not start."""
        self._comm, self._options = comm, options
        self._engine: TorchEngine = on_all_ranks(comm, lambda: _torch_engine(options, engine))
        self._phases = Phases(timeline, engine, options.comm) if timeline else None
        self._all = Bucket(slice(0, engine.gradients.size), tuple(engine.tensors))
        self._backward_at: float | None = None
        self._computed = 0.0
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Start the other project's exchange; collective. Raises AgreedError where that fails."""

    def gradients(self, images: Images, labels: Labels, step: int) -> Sums:
        """Compute, and have the gradients summed meanwhile."""
        batches = list(micro_batches(images, labels, step, self._options))
        self._engine.clear()
        sums = Sums()
        for batch in batches[:-1]:
            start = time.perf_counter()
            sums += self._add(batch)
            self._show(start, time.perf_counter())
        start = time.perf_counter()
        sums += self._add_and_sum(batches[-1])
        done = time.perf_counter()
        self._show(start, self._computed)
        if self._phases:
            self._phases.message(self._all, self._computed, done)
        self.communication_s += done - self._computed
        self._engine.fetch()
        return sums

    @abstractmethod
    def _add(self, batch: MicroBatch) -> Sums:
        """Add a micro-batch's gradients to this rank's."""

    @abstractmethod
    def _add_and_sum(self, batch: MicroBatch) -> Sums:
        """The same for the last one, and replace all by their sums over the ranks."""

    def _note_backward(self, part: slice) -> None:
        """Called by the engine in a micro-batch that is not the last."""
        if part.start == part.stop:
            self._backward_at = time.perf_counter()

    def _note(self, part: slice) -> None:
        """Called by the engine in the last one."""
        self._note_backward(part)
        self._computed = time.perf_counter()
        if self._phases:
            self._phases.ready(part, self._computed)

    def _show(self, start: float, stop: float) -> None:
        if self._phases:
            self._phases.computed(start, self._backward_at, stop)


class DdpExchange(TorchExchange):
    """torch.nn.parallel.DistributedDataParallel, over gloo between CPUs and NCCL (RCCL) between GPUs."""

    def _begin(self) -> None:
        """Meet at an address that rank 0 sends to the other ranks through MPI."""
        store = _meet(self._comm)
        self._ddp = on_all_ranks(self._comm, lambda: self._start(store))

    def _start(self, store: Any) -> Any:
        backend = "gloo" if self._engine.device == "cpu" else "nccl"
        try:
            torch.distributed.init_process_group(
                backend, store=store, rank=self._comm.Get_rank(), world_size=self._comm.Get_size()
            )
            return torch.nn.parallel.DistributedDataParallel(self._engine.modules)
        except (RuntimeError, ValueError) as error:
            raise TrainError(f"--comm ddp: {backend} does not start ({error})") from error

    def _add(self, batch: MicroBatch) -> Sums:
        return self._through_ddp(batch, self._ddp.no_sync(), self._note_backward)

    def _add_and_sum(self, batch: MicroBatch) -> Sums:
        return self._through_ddp(batch, nullcontext(), self._note)

    def _through_ddp(
        self, batch: MicroBatch, context: AbstractContextManager[Any], note: Callable[[slice], None]
    ) -> Sums:
        # DDP divides by the number of ranks; the loop wants sums.
        scale = float(self._comm.Get_size())
        with context:
            return self._engine.accumulate(*batch, note, scale, self._ddp)

    def close(self) -> None:
        """Leave the process group; its other users, if any, would lose it."""
        torch.distributed.destroy_process_group()


class HorovodExchange(TorchExchange):
    """horovod.torch: each gradient is handed over when it is there, as by its DistributedOptimizer."""

    def _begin(self) -> None:
        """Start Horovod, which must see the same ranks as MPI."""
        self._hvd = on_all_ranks(self._comm, lambda: _start_horovod(self._comm, self._options))
        self._handles: list[Any] = []
        self._hands_over = False
        for tensor, parameter in zip(self._engine.tensors, self._engine.modules.parameters(), strict=True):
            parameter.register_post_accumulate_grad_hook(
                lambda parameter, name=tensor.name: self._hand_over(name, parameter)
            )

    def _hand_over(self, name: str, parameter: Any) -> None:
        if self._hands_over:
            summed = self._hvd.allreduce_async_(parameter.grad, name=name, op=self._hvd.Sum)
            self._handles.append(summed)

    def _add(self, batch: MicroBatch) -> Sums:
        return self._engine.accumulate(*batch, self._note_backward)

    def _add_and_sum(self, batch: MicroBatch) -> Sums:
        self._hands_over = True
        try:
            sums = self._engine.accumulate(*batch, self._note)
        finally:
            self._hands_over = False
        handles, self._handles = self._handles, []
        for handle in handles:
            self._hvd.synchronize(handle)
        return sums

    def close(self) -> None:
        """Stop Horovod on all ranks."""
        self._hvd.shutdown()


def _torch_engine(options: Options, engine: Engine) -> TorchEngine:
    if not isinstance(engine, TorchEngine):
        raise BadRequestError(f"--comm {options.comm} needs --engine torch, not {engine.name}")
    return engine


def _meet(comm: Comm) -> Any:
    """A store that all ranks reach, on a port that is free on rank 0's host; collective."""
    from mpi4py import MPI

    ranks, rank = comm.Get_size(), comm.Get_rank()
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    host = "127.0.0.1" if node.Get_size() == ranks else socket.gethostname()
    node.Free()
    stores = []

    def store(host: str, port: int) -> Any:
        try:
            return torch.distributed.TCPStore(
                host,
                port,
                ranks,
                is_master=rank == 0,
                timeout=timedelta(seconds=_RENDEZVOUS_S),
                wait_for_workers=False,
            )
        except RuntimeError as error:
            raise TrainError.of("no meeting", host=host, port=port, error=error) from error

    def listen() -> tuple[str, int]:
        stores.append(store(host, 0))
        return host, stores[0].port

    address = on_rank_0(comm, listen)
    return on_all_ranks(comm, lambda: stores[0] if stores else store(*address))


def _start_horovod(comm: Comm, options: Options) -> Any:
    try:
        import horovod.torch as hvd

        has_mpi = hvd.mpi_built()
    except (ImportError, AttributeError) as error:  # without a library for torch it has no such functions
        raise TrainError.of("no Horovod", error=error) from error
    if not has_mpi:
        raise TrainError("--comm horovod: this Horovod is built without MPI", "HOROVOD_WITH_MPI=1 builds it.")
    os.environ["HOROVOD_CONTROLLER"] = "mpi"  # another one would not know of these ranks
    if options.timeline is not None:
        os.environ.pop("HOROVOD_TIMELINE", None)  # the file may be that of ours
    hvd.init()
    if (hvd.size(), hvd.rank()) != (comm.Get_size(), comm.Get_rank()):
        by_mpi = f"{comm.Get_rank()} of {comm.Get_size()}"
        raise TrainError.of("other Horovod", seen=f"{hvd.rank()} of {hvd.size()}", by_mpi=by_mpi)
    return hvd
