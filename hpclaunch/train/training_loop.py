"""The training loop: data-parallel, synchronous, the same on every rank.

Each step, every rank computes the summed gradients of its share of the step's images; the sum over the
ranks, divided by the number of images in the step (known to all by arithmetic), is the gradient of the
whole batch whatever the shares are; every rank then takes the same optimiser step. The loop knows
engines, exchanges and optimisers by their interfaces only.
"""

import math
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, field, fields
from itertools import accumulate, pairwise, starmap
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .allreduce import ALLREDUCES, Comm
from .checkpoint import Checkpoint, CheckpointFolder, check_matches, read_checkpoint
from .collective import AgreedError, broadcast, largest, on_all_ranks, on_rank_0, same_everywhere
from .data.dataset import prefetched
from .data.epoch_partition import epoch_order, rank_shares, steps_per_epoch
from .data.image_sources import Source
from .engine import ENGINES, Images, Labels, Sums
from .exchange import COMMS, micro_batches
from .exchange.rank_consistency import agree_on_tensors, not_finite
from .run_errors import BadCheckpointError, TrainError
from .run_options import Options
from .run_report import Reporter
from .stop_signals import Checkpointed, StopRequest, Vote
from .timeline_writer import close_timeline, open_timeline

_MOST_REPORTS_PER_EPOCH = 10
# Losses are rounded to multiples of this, 2^-24: sums of them below 2^29 are exact in whatever order they are
# taken, so that a history does not depend on where checkpoints were written.
_LOSS_GRAIN = 2.0**-24


@dataclass
class Position:
    """How far a run is; what a checkpoint contains in addition to the arrays."""

    epoch: int = 0
    """Epochs that are done."""
    images_in_epoch: int = 0
    """Images of the current epoch that are done, over all ranks: the next step starts there in its order."""
    step: int = 0
    """Steps that are done since the start of the run, before a resume included."""
    running: Sums = field(default_factory=Sums)
    """Over all ranks, loss and right answers of the current epoch up to the last checkpoint."""
    elapsed_s: float = 0.0
    """Seconds of training and evaluation since the start of the run, on rank 0, pauses not counted."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """One entry per finished epoch."""


@dataclass
class Clock:
    """Seconds of this rank since the start or the resume."""

    training: float = 0.0
    """In steps: gradients, their exchange, updates, and waiting for their data."""
    data: float = 0.0
    """Of it, until the images of a step were there."""
    evaluation: float = 0.0
    checkpoints: float = 0.0


class Training:
    """A run on one rank. All methods are collective."""

    def __init__(
        self, comm: Comm, options: Options, data: Source, report: Reporter, stop: StopRequest
    ) -> None:
        """Build engine and exchange for ``options``; draws nothing and trains nothing yet."""
        self._comm = comm
        self._rank = comm.Get_rank()
        self._ranks = comm.Get_size()
        self._options = options
        self._data = data
        self._report = report
        self._stop = stop
        self._vote = Vote(comm)
        self._schedule = options.schedule(self._ranks)
        self._exchange_s: list[float] = []  # of each step, without what is hidden behind computing
        self._messages_s: list[float] = []  # of each step, with it
        self._own_s: list[float] = []  # of each step, without its exchange
        self._images = len(data.train_labels)
        self._metrics = ALLREDUCES["ring"](comm)  # not the gradients' allreduce, whose bytes are counted
        self._folder = (
            CheckpointFolder(options.checkpoint_dir, options.keep) if options.checkpoint_dir else None
        )
        self.images_per_step = options.step_images * self._ranks
        self.steps_per_epoch = steps_per_epoch(self._images, options.step_images, self._ranks)
        self.engine = on_all_ranks(comm, lambda: ENGINES[options.engine](options, self._rank))
        agree_on_tensors(comm, self.engine)
        self.timeline = open_timeline(comm, options)
        self.exchange = COMMS[options.comm](comm, options, self.engine, self.timeline)
        self.position = Position()
        self.clock = Clock()
        self.resumed_from_step: int | None = None
        self.images_seen = 0
        """Images over all ranks since the start or the resume."""
        self.own_images = 0
        """The images among them that this rank has."""

    def run(self) -> list[str]:
        """Train to the last epoch; the sha256 of the parameters by rank, all equal.

        Raises AgreedError on all ranks for a folder that cannot be written, a checkpoint that cannot be
        used, gradients that are not finite, or parameters that differ between ranks; Checkpointed on all
        ranks where one got a request to stop.
        """
        self._prepare()
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found by its gradient
            while self.position.epoch < self._options.epochs and not self.reached_target():
                with closing(self._batches()) as batches:
                    stop = self._steps(batches)
                if stop and self.position.epoch < self._options.epochs and not self.reached_target():
                    self._leave()
        return same_everywhere(self._comm, self.engine.state()["parameters"])

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """`close`, unless this rank alone has an error: the other ranks would not take part."""
        if kind is None or issubclass(kind, (AgreedError, Checkpointed)):
            self.close()

    def close(self) -> None:
        """Free what the ranks share; parameters and gradients stay readable."""
        self.exchange.close()
        close_timeline(self._comm, self._options, self.timeline)
        self._metrics.close()
        self._vote.close()

    def reached_target(self) -> bool:
        """Whether the last epoch reached the test accuracy of ``--target-accuracy``."""
        target, history = self._options.target_accuracy, self.position.history
        return target is not None and bool(history) and history[-1]["test_accuracy"] >= target

    def best_epoch(self) -> dict[str, Any] | None:
        """The entry of the history with the highest test accuracy, the first of equal ones."""
        return max(self.position.history, key=lambda entry: float(entry["test_accuracy"]), default=None)

    def waiting_s(self) -> float:
        """Seconds of communication that the mean rank spent waiting for slower ones; collective.

        The rank that comes last to a step's exchange does not wait: its time there is what the exchange
        takes, and what the other ranks spend above it is waiting.
        """
        mine = np.array(self._exchange_s)
        by_rank = np.array(self._comm.allgather(mine))
        return float((by_rank - by_rank.min(axis=0, initial=math.inf)).sum() / self._ranks)

    def step_deviation_s(self) -> float | None:
        """Standard deviation of a rank's own time in a step, without the exchange, of the mean rank.

        Without the first step, which takes longer. None where too few steps are left. Collective.
        """
        own = self._own_s[1:]
        mine = float(np.std(own)) if len(own) > 1 else None
        known = [value for value in self._comm.allgather(mine) if value is not None]
        return sum(known) / len(known) if known else None

    def messages_per_step(self) -> float | None:
        """Sums over the ranks in a step, on average; None: not known, or no step was made."""
        messages, steps = self.exchange.messages, len(self._messages_s)
        return None if messages is None or steps == 0 else messages / steps

    def bus_gb_s(self) -> float | None:
        """The rate of each rank's link while gradients were exchanged, as nccl-tests define it.

        Bytes of the gradients / time * 2(p-1)/p for every algorithm; the time of a step is that of the rank
        that waited least. None on one rank, and where the hidden time is not known. Collective.
        """
        seconds = (
            np.array(self._comm.allgather(np.array(self._messages_s))).min(axis=0, initial=math.inf).sum()
        )
        if self._ranks == 1 or self.exchange.overlapped_s is None or not seconds:
            return None
        moved = self.engine.gradients.nbytes * len(self._messages_s) * 2 * (self._ranks - 1) / self._ranks
        return float(moved / seconds / 1e9)

    def _prepare(self) -> None:
        """The first parameters, drawn by rank 0 or from its newest checkpoint, on all ranks."""
        if self._folder:
            remark = on_rank_0(self._comm, self._folder.prepare)
            if remark:
                self._report.line(remark)
        if self._options.resume:
            self.position = on_rank_0(self._comm, self._resume)
        if self.position.step:
            self.resumed_from_step = self.position.step
            self._report.line(f"resumed from step {self.position.step}, epoch {self.position.epoch + 1}")
        elif self._rank == 0:
            self.engine.initialise()
        self._report.goes_on_after(self.position.step, self.position.elapsed_s)
        state = self.engine.state()
        for name in sorted(state):
            broadcast(self._comm, state[name])
        self.engine.load_state(state)
        same_everywhere(self._comm, self.engine.state()["parameters"])

    def _batches(self) -> Generator[tuple[Images, Labels], None, None]:
        """This rank's part of each step that is left in the epoch, first to last."""
        order = epoch_order(self._images, self._options.seed, self.position.epoch)
        start = self.position.images_in_epoch

        def parts(rank: int) -> list[slice]:
            return rank_shares(start, self._images, self.images_per_step, self._ranks, rank)

        def wanted(rank: int) -> npt.NDArray[np.int64]:
            return np.concatenate([order[part] for part in parts(rank)])

        take, labels = self._data.epoch(wanted), self._data.train_labels[wanted(self._rank)]

        def batch(places: slice) -> tuple[Images, Labels]:
            return take(places), labels[places]

        ends = accumulate(part.stop - part.start for part in parts(self._rank))
        places = starmap(slice, pairwise([0, *ends]))
        yield from prefetched(batch, places) if self._options.prefetches else map(batch, places)

    def _steps(self, batches: Iterator[tuple[Images, Labels]]) -> bool:
        """The rest of the epoch; whether any rank was requested to stop in its last step."""
        position, stop, every = self.position, False, self._options.checkpoint_every
        # Steps since the last report or checkpoint are in ``local``, this rank's alone; those before, of all
        # ranks, in the position, where a checkpoint finds them.
        seconds, images, local = self.clock.training, self.images_seen, Sums()
        report_every = math.ceil(self.steps_per_epoch / _MOST_REPORTS_PER_EPOCH)
        reported = (seconds, images, self.exchange.communication_s)
        while position.images_in_epoch < self._images:
            sums, stop = self._step(batches)
            local += sums
            index = -(-position.images_in_epoch // self.images_per_step)
            last = position.images_in_epoch == self._images
            report = index % report_every == 0
            save = (stop or (every is not None and position.step % every == 0)) and not last
            if last or report or save:
                recent = self._over_ranks(local)
                position.running += recent
                local = Sums()
            if report:
                self._report_steps(index, recent, reported)
                reported = (self.clock.training, self.images_seen, self.exchange.communication_s)
            if save:
                self._save()
            if stop and not last:
                self._leave()
        speed = _rate(self.images_seen - images, self.clock.training - seconds)
        self._finish_epoch(speed, self.clock.training - seconds)
        return stop

    def _step(self, batches: Iterator[tuple[Images, Labels]]) -> tuple[Sums, bool]:
        """One optimiser step; this rank's loss and right answers, and whether any rank is to stop."""
        position, start = self.position, time.perf_counter()
        first = position.images_in_epoch
        last = min(first + self.images_per_step, self._images)
        self._vote.cast(self._stop.requested)
        with self._computing("INPUT"):
            images, labels = next(batches)
        self.clock.data += time.perf_counter() - start
        exchange_s, hidden_s = self.exchange.communication_s, self.exchange.overlapped_s or 0
        sums = self.exchange.gradients(images, labels, position.step)
        self._exchange_s.append(self.exchange.communication_s - exchange_s)
        self._messages_s.append(self._exchange_s[-1] + (self.exchange.overlapped_s or 0) - hidden_s)
        stop = self._vote.outcome()
        self._stop_if_not_finite(images, labels)
        rate = self._schedule.rate(position.epoch + first / self._images)
        with self._computing("UPDATE"):
            self.engine.update(rate, last - first)
        if self.timeline:
            self.timeline.step_ends()
        position.step += 1
        position.images_in_epoch = last
        self.images_seen += last - first
        self.own_images += len(labels)
        done_s = position.elapsed_s + time.perf_counter() - start
        self._report.advance(self._epoch_of_epochs(), last / self._images, position.step, done_s)
        seconds = time.perf_counter() - start
        self._own_s.append(seconds - self._exchange_s[-1])
        self.clock.training += seconds
        position.elapsed_s += seconds
        loss = float(np.round(sums.loss / _LOSS_GRAIN)) * _LOSS_GRAIN
        return Sums(loss, sums.correct, sums.images), stop and self._may_stop()

    def _computing(self, what: str) -> AbstractContextManager[None]:
        """On the timeline, if there is one."""
        return self.timeline.computing(what) if self.timeline else nullcontext()

    def _may_stop(self) -> bool:
        """Whether to stop; without a folder for the checkpoint, print a line and go on."""
        self._stop.requested = False
        if self._folder is None:
            self._report.line("stop requested, but without --checkpoint-dir nothing can be saved: going on")
        return self._folder is not None

    def _leave(self) -> NoReturn:
        """End the run on all ranks at once, after its last checkpoint."""
        self._comm.Barrier()
        raise Checkpointed(self.position.step)

    def _stop_if_not_finite(self, images: Images, labels: Labels) -> None:
        """Raise on all ranks in the same step if the norm of the summed gradients is not finite."""
        if math.isfinite(float(np.dot(self.engine.gradients, self.engine.gradients))):
            return
        where = f"step {self.position.step + 1} (epoch {self.position.epoch + 1})"
        message = f"the loss is not finite at {where}: training diverged with --lr {self._options.lr:g}"
        batches = micro_batches(images, labels, self.position.step, self._options)
        culprit = not_finite(self._comm, self.engine, batches)
        raise AgreedError(TrainError(f"{message} ({culprit})", "Use a smaller --lr."))

    def _finish_epoch(self, images_per_s: float, seconds: float) -> None:
        position, trained = self.position, self.position.running
        start = time.perf_counter()
        with self._computing("EVALUATION"):
            test = self._evaluate()
        evaluation_s = time.perf_counter() - start
        self.clock.evaluation += evaluation_s
        entry = {
            "epoch": position.epoch + 1,
            "steps": position.step,
            "train_images": trained.images,
            "train_loss": trained.mean_loss,
            "train_accuracy": trained.accuracy,
            "test_images": test.images,
            "test_loss": test.mean_loss,
            "test_accuracy": test.accuracy,
            "images_per_s": images_per_s,
            "seconds": seconds,
        }
        self.position = Position(
            epoch=position.epoch + 1,
            step=position.step,
            elapsed_s=largest(self._comm, position.elapsed_s + evaluation_s),  # a checkpoint has one time
            history=[*position.history, entry],
        )
        self._report.epoch(self._options.epochs, entry)
        self._save(best=self._options.keep_best and self.best_epoch() is entry)

    def _evaluate(self) -> Sums:
        """Loss and right answers over all test images, each seen by one rank."""
        labels = self._data.test_labels[self._data.test_part]
        sums = self.engine.evaluate(self._data.test_images, labels)
        total = self._over_ranks(sums)
        if not math.isfinite(total.loss):
            message = f"the test loss is not finite after epoch {self.position.epoch + 1}"
            raise AgreedError(TrainError(message, "Use a smaller --lr."))
        return total

    def _over_ranks(self, sums: Sums) -> Sums:
        values = np.array([sums.loss, sums.correct, sums.images], np.float64)
        self._metrics.sum(values)
        return Sums(float(values[0]), int(values[1]), int(values[2]))

    def _report_steps(self, index: int, recent: Sums, before: tuple[float, int, float]) -> None:
        """``index``: of the last step in its epoch; ``before``: seconds, images, communication until then."""
        seconds = self.clock.training - before[0]
        facts = {
            "epoch": self.position.epoch + 1,
            "step": self.position.step,
            "images_per_s": _rate(self.images_seen - before[1], seconds),
            "loss": recent.mean_loss,
            "accuracy": recent.accuracy,
            "communication_share": (self.exchange.communication_s - before[2]) / max(seconds, 1e-9),
        }
        done = self.position.images_in_epoch / self._images
        self._report.step(self._epoch_of_epochs(), f"{index}/{self.steps_per_epoch}", done, facts)

    def _epoch_of_epochs(self) -> str:
        return f"{self.position.epoch + 1}/{self._options.epochs}"

    def _save(self, *, best: bool = False) -> None:
        """Rank 0 writes a checkpoint, if a folder was named; a failure is raised on all ranks."""
        folder = self._folder
        if folder is None:
            return
        start = time.perf_counter()
        checkpoint = Checkpoint(
            self.engine.state(), {**self._identity(), **self._step_facts(), **asdict(self.position)}
        )
        path = on_rank_0(self._comm, lambda: folder.save(checkpoint, self.position.step, best=best))
        seconds = time.perf_counter() - start
        self.clock.checkpoints += seconds
        self._report.event("checkpoint", {"step": self.position.step, "path": str(path), "seconds": seconds})

    def _identity(self) -> dict[str, Any]:
        """Return the facts that must be the same in a resumed run and in the one that it continues."""
        return {
            "model": self._options.model,
            "optimizer": self._options.optimizer,
            "dataset": self._data.name,
            "train_images": self._images,
            "seed": self._options.seed,
        }

    def _step_facts(self) -> dict[str, Any]:
        """Return the facts that may differ in a resumed run, which then ends with other bits."""
        return {
            "ranks": self._ranks,
            "images_per_step": self.images_per_step,
            "batch_size": self._options.batch_size,
            "fusion_bytes": self._options.fusion_bytes,
            "allreduce": self._options.allreduce,
            "compression": self._options.compression,
        }

    def _resume(self) -> Position:
        """Rank 0: load the newest checkpoint that is whole, if there is one, and return its position."""
        assert self._folder is not None  # noqa: S101
        paths = self._folder.newest()
        if not paths:
            self._report.line(f"no checkpoint in {self._options.checkpoint_dir}: starting from scratch")
            return Position()
        path, checkpoint = self._newest_whole(paths)
        check_matches(path, checkpoint.meta, self._identity())
        for name, value in self._step_facts().items():
            if checkpoint.meta.get(name) != value:
                self._report.line(f"{path.name} has {name} {checkpoint.meta.get(name)}; from here on {value}")
        try:
            self.engine.load_state(checkpoint.arrays)
            facts = {each.name: checkpoint.meta[each.name] for each in fields(Position)}
            return Position(**{**facts, "running": Sums(**facts["running"])})
        except (KeyError, TypeError, ValueError) as error:
            raise BadCheckpointError(f"{path}: not a checkpoint of this model ({error})") from error

    def _newest_whole(self, paths: Sequence[Path]) -> tuple[Path, Checkpoint]:
        """The first of ``paths`` that can be read, naming those before it; the last one's error if none."""
        for path in paths[:-1]:
            try:
                return path, read_checkpoint(path)
            except BadCheckpointError as damaged:
                self._report.line(f"{damaged.message}; trying the one before")
        return paths[-1], read_checkpoint(paths[-1])


def _rate(images: int, seconds: float) -> float:
    return images / max(seconds, 1e-9)
