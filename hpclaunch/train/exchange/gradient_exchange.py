"""Our own exchange: many layers in one message, by any of `ALLREDUCES`, after computing or during it."""

import threading
import time
from queue import SimpleQueue

import numpy as np

from ..allreduce import Algorithm, Comm, make_allreduce
from ..collective import AgreedError
from ..engine import Engine, Images, Labels, Sums
from ..run_errors import BadRequestError
from ..run_options import Options
from ..timeline_writer import Timeline
from . import Exchange, MicroBatch, micro_batches
from .tensor_fusion import Bucket, Phases, buckets


class GradientExchange(Exchange):
    """Computes a rank's gradients where the allreduce is fastest, and sums them there.

    Messages and their order are the same on all ranks: the other ranks wait for one that comes late.
    """

    allreduce: Algorithm

    def __init__(
        self, comm: Comm, options: Options, engine: Engine, timeline: Timeline | None = None
    ) -> None:
        """Take the memory for the engine's gradients; collective.

        Raises AgreedError for ``--overlap`` where MPI does not let two threads communicate.
        """
        self._options = options
        self._engine = engine
        if options.overlap:
            from mpi4py import MPI

            names = {
                MPI.THREAD_SINGLE: "MPI_THREAD_SINGLE",
                MPI.THREAD_FUNNELED: "MPI_THREAD_FUNNELED",
                MPI.THREAD_SERIALIZED: "MPI_THREAD_SERIALIZED",
            }
            level = comm.allreduce(MPI.Query_thread(), op=MPI.MIN)
            if level < MPI.THREAD_MULTIPLE:
                raise AgreedError(BadRequestError.of("overlap without threads", level=names[level]))
        self.allreduce = make_allreduce(options.allreduce, options.compression, comm)
        start = time.perf_counter()
        engine.place_gradients(self.allreduce.buffer(engine.gradients.size, engine.gradients.dtype))
        self._phases = Phases(timeline, engine, self.allreduce.name) if timeline else None
        if self._phases:
            self._phases.buffer(start, time.perf_counter())
        self._accumulated = engine.gradients[:0]
        """Gradients of a step's micro-batches before the last."""
        self._adds_up = False
        """Whether this step has several micro-batches."""
        self._position = 0
        """Of the gradients that may be sent, the first; -1 while none may."""
        self._backward_at: float | None = None
        self._buckets = buckets(engine.tensors, engine.gradients.itemsize, options.fusion_bytes)
        self._messages: list[tuple[float, float]] = []
        """Of the current step: when they began and ended."""
        self._reported: SimpleQueue[int | None] = SimpleQueue()
        """From which position on the gradients of a step are ready, for the thread; None: no further step."""
        self._outcome: SimpleQueue[BaseException | None] = SimpleQueue()
        # A signal interrupts the wait for it, not the thread, which ends with the process.
        thread = threading.Thread(target=self._send_beside, name="gradient messages", daemon=True)
        self._thread = thread if options.overlap else None
        if self._thread:
            self._thread.start()
        self.overlapped_s = 0.0
        self.messages = 0

    def gradients(self, images: Images, labels: Labels, step: int) -> Sums:
        """Compute and sum."""
        sums = self._compute(list(micro_batches(images, labels, step, self._options)))
        if self._position:
            raise RuntimeError(f"the {self._engine.name} engine left {self._position} gradients unready")
        computed = time.perf_counter()
        if not self._thread:
            for bucket in self._buckets:
                self._send(bucket)
        elif error := self._outcome.get():
            raise error
        self._count(computed, time.perf_counter())
        return sums

    def close(self) -> None:
        """Free the buffer; the engine keeps its gradients in ordinary memory."""
        if self._thread:
            self._reported.put(None)
            self._thread.join()
        self._engine.place_gradients(self._engine.gradients.copy())
        self.allreduce.close()

    def _compute(self, batches: list[MicroBatch]) -> Sums:
        """Leave the gradients of all ``batches`` in the engine; ready are those of the last one."""
        gradients, sums = self._engine.gradients, Sums()
        self._adds_up = len(batches) > 1
        for index, batch in enumerate(batches):
            if index == 1:
                self._accumulated = gradients.copy()
            elif index > 1:
                self._accumulated += gradients
            self._position = gradients.size if index == len(batches) - 1 else -1
            self._backward_at = None
            start = time.perf_counter()
            sums += self._engine.compute_gradients(*batch, self._ready)
            if self._phases:
                self._phases.computed(start, self._backward_at, time.perf_counter())
        return sums

    def _ready(self, part: slice) -> None:
        """Called by the engine as back-propagation goes on."""
        now = time.perf_counter()
        if part.start == part.stop:
            self._backward_at = now
        elif self._position >= 0:
            if part.stop != self._position:
                raise RuntimeError(f"gradients ready up to {part.stop}, but expected up to {self._position}")
            if self._adds_up:
                self._engine.gradients[part] += self._accumulated[part]
            self._position = part.start
            if self._phases:
                self._phases.ready(part, now)
            if self._thread:
                self._reported.put(part.start)

    def _send_beside(self) -> None:
        """In the thread: all messages of each step, each as soon as its tensors are ready."""
        while (position := self._reported.get()) is not None:
            error: BaseException | None = None
            try:
                with np.errstate(over="ignore", invalid="ignore"):  # the loop checks all sums
                    for bucket in self._buckets:
                        while position > bucket.part.start:
                            position = self._reported.get() or 0
                        self._send(bucket)
            except BaseException as caught:
                error = caught
            self._outcome.put(error)

    def _send(self, bucket: Bucket) -> None:
        start = time.perf_counter()
        self.allreduce.sum(self._engine.gradients[bucket.part])
        stop = time.perf_counter()
        self._messages.append((start, stop))
        if self._phases:
            self._phases.message(bucket, start, stop)

    def _count(self, computed: float, done: float) -> None:
        """After a step: when its gradients were ``computed``, and when their exchange was ``done``."""
        messages, self._messages = self._messages, []
        self.messages = (self.messages or 0) + len(messages)
        self.communication_s += done - computed
        hidden = sum(min(stop, computed) - start for start, stop in messages if start < computed)
        self.overlapped_s = (self.overlapped_s or 0.0) + hidden
