"""The output of a run: progress while it goes, a table at its end. Only rank 0 writes."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from .data.epoch_partition import steps_per_epoch
from .progress_display import Progress, ProgressFile, TerminalBar
from .run_errors import BadRequestError, text_of
from .run_options import Options


class EventLog:
    """A file of JSON documents, one per line, each written as soon as it happens: ``--log-json``."""

    def __init__(self, path: Path, *, goes_on: bool) -> None:
        """``goes_on``: what is in the file stays, except a last line that a killed run left unfinished.

        BadRequestError if the file cannot be written.
        """
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            whole = path.read_bytes().rfind(b"\n") + 1 if goes_on else 0
            os.ftruncate(self._file, whole)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise BadRequestError.of("no log", path=path, reason=error.strerror or error) from error

    def write(self, event: str, facts: Mapping[str, Any]) -> str | None:
        """Add one line; a message for the user where it cannot be written: no further lines are then."""
        if self._file is None:
            return None
        line = json.dumps({"event": event, "time": time.time(), **facts}, default=str).encode() + b"\n"
        end = os.lseek(self._file, 0, os.SEEK_CUR)
        try:
            if os.write(self._file, line) == len(line):
                return None
            reason = "no room"
        except OSError as error:
            reason = error.strerror or str(error)
        os.ftruncate(self._file, end)  # whole lines only
        os.close(self._file)
        self._file = None
        return f"--log-json {self._path}: {reason}; the run goes on without it"


class Reporter:
    """Writes lines to a stream, and between them shows the progress of an epoch."""

    def __init__(
        self,
        stream: TextIO,
        *,
        speaks: bool,
        bar: TerminalBar | None = None,
        file: ProgressFile | None = None,
    ) -> None:
        """``speaks`` False: write nothing (all ranks but 0).

        ``bar``: shows progress on the terminal that ``stream`` is, instead of a line per some steps;
        ``file``: shows it to another process.
        """
        self._stream = stream
        self._speaks = speaks
        self._bar = bar if speaks else None
        self._file = file if speaks else None
        self._figures = ""
        self._work = (0, 0.0)
        self._log: EventLog | None = None

    def log_to(self, log: EventLog) -> None:
        """Write all events to ``log``, too, from now on; on the rank that speaks."""
        self._log = log

    def line(self, text: str) -> None:
        """One line that stays."""
        self.event("message", {"text": text})
        self._print(text)

    def event(self, event: str, facts: Mapping[str, Any]) -> None:
        """For the log alone."""
        problem = self._log.write(event, facts) if self._log else None
        if problem:
            self._print(problem)

    def goes_on_after(self, step: int, seconds: float) -> None:
        """Say, and note in the job's folder, what an earlier run of this job has done after this point."""
        lost = self._file.lost_after(step, seconds) if self._file else None
        if lost and lost.steps:
            since = f"its checkpoint of step {step}" if step else "its start"
            self.line(text_of("lost work", lost=lost, since=since))

    def advance(self, epoch: str, share: float, step: int, seconds: float) -> None:
        """``share`` (0..1) of the epoch is done, and so much of the training. Cheap: call it every step."""
        self._work = (step, seconds)
        self._show(epoch, share)

    def step(self, epoch: str, step: str, share: float, facts: Mapping[str, Any]) -> None:
        """The figures of the last steps: their speed, mean loss, accuracy, share of communication."""
        self.event("step", facts)
        speed, loss = f"{facts['images_per_s']:,.0f} images/s", f"loss {facts['loss']:.4f}"
        accuracy, communication = facts["accuracy"], facts["communication_share"]
        self._figures = f"{speed}  {loss}  acc {accuracy:.4f}  comm {communication:.0%}"
        self._show(epoch, share, at_once=True)
        if not self._bar:
            figures = f"{speed}  {loss}  accuracy {accuracy:.4f}  communication {communication:.0%}"
            self._print(f"epoch {epoch}  step {step}  {figures}")

    def _show(self, epoch: str, share: float, *, at_once: bool = False) -> None:
        for display in (self._bar, self._file):
            if display:
                progress = Progress(f"epoch {epoch}", share, self._figures, *self._work)
                display.show(progress, at_once=at_once)

    def epoch(self, epochs: int, entry: Mapping[str, Any]) -> None:
        """The outcome of one epoch, as in the history."""
        self.event("epoch", entry)
        self._print(
            f"epoch {entry['epoch']}/{epochs} done  {entry['images_per_s']:,.0f} images/s  "
            f"loss {entry['train_loss']:.4f}  accuracy {entry['train_accuracy']:.4f}  "
            f"test loss {entry['test_loss']:.4f}  test accuracy {entry['test_accuracy']:.4f}"
        )

    def table(self, result: Mapping[str, Any]) -> None:
        """The end of the run, one fact per line."""
        if self._file:
            self._file.remove()
        self.event("result", result)
        for name, value in table_rows(result).items():
            self._print(f"  {name:<15} {value}")

    def clear(self) -> None:
        """Remove the bar, before another process writes to the terminal."""
        if self._bar:
            self._bar.clear()

    def _print(self, text: str) -> None:
        if self._speaks:
            if self._bar:
                self._bar.clear()
            print(text, file=self._stream, flush=True)


def table_rows(result: Mapping[str, Any]) -> dict[str, str]:
    """The rows of the table at the end, by name."""
    rows = {
        "data": f"{result['dataset']} ({result['dataset_source']})",
        "model": f"{result['model']}, {result['parameters']:,} parameters",
        "optimizer": f"{result['optimizer']}, learning rate {_rate(result)}",
        "ranks": f"{result['ranks']} on {len(result['hosts'])} host(s), {_exchanged_by(result)}",
        "batch": f"{result['batch_size']} images at once, {result['images_per_step']} per step",
        "steps": f"{result['steps']:,} in {len(result['history'])} epochs",
        "test accuracy": _accuracy(result),
        "test loss": f"{result['test_loss']:.4f}",
        "images/s": f"{result['images_per_s']:,.0f}, {result['images_per_s_of_a_rank']:,.0f} per rank",
        "efficiency": _efficiency(result),
        "time": _time(result["seconds"]),
        "sent per rank": _sent(result),
        "peak memory": _memory(result["peak_memory_bytes"]),
        "parameters": f"sha256 {result['parameters_sha256'][0][:16]}..., the same on all ranks",
    }
    return {name: row for name, row in rows.items() if row}


def _rate(result: Mapping[str, Any]) -> str:
    scaled = f" ({result['lr_scaling']} scaling: {result['lr_scaled']:g})"
    decay = "" if result["decay"] == "none" else f", {result['decay']} decay"
    return f"{result['lr']:g}{scaled if result['lr_scaled'] != result['lr'] else ''}{decay}"


def _accuracy(result: Mapping[str, Any]) -> str:
    last = f"{result['test_accuracy']:.4f} on {result['test_images']:,} images"
    if result["best_test_accuracy"] == result["test_accuracy"]:
        return last
    return f"{last}; best {result['best_test_accuracy']:.4f} after epoch {result['best_epoch']}"


def _memory(peak: Mapping[str, list[int] | None]) -> str:
    """Of the rank that needed most."""
    places = {"host": "in host memory", "device": "on its GPU"}
    found = [f"{max(peak[name] or [0]) / 1e6:,.0f} MB {text}" for name, text in places.items() if peak[name]]
    return f"{', '.join(found)} (the rank with most)"


def _exchanged_by(result: Mapping[str, Any]) -> str:
    if not result["allreduce"]:
        return str(result["comm"])
    compressed = "" if result["compression"] == "none" else f", {result['compression']}"
    return f"{result['allreduce']} allreduce{compressed}"


def _efficiency(result: Mapping[str, Any]) -> str:
    baseline = result["baseline"]
    if not baseline:
        return ""
    return (
        f"{result['scaling_efficiency']:.1%} of {result['ranks']} x {baseline['images_per_s']:,.0f} images/s"
    )


def _time(seconds: Mapping[str, float]) -> str:
    total = max(seconds["training"], 1e-9)
    shares = {name: seconds[name] / total for name in ("compute", "communication", "waiting", "data")}
    hidden = seconds["overlapped"]
    more = f"; {hidden:.1f} s of communication during compute" if hidden else ""
    return (
        f"{seconds['training']:.1f} s of training: {shares['compute']:.0%} compute, "
        f"{shares['communication']:.0%} communication ({shares['waiting']:.0%} waiting), "
        f"{shares['data']:.0%} data{more}"
    )


def _sent(result: Mapping[str, Any]) -> str:
    if result["bytes_sent_per_rank"] is None:
        return ""
    bandwidth = result["bus_gb_s"]
    at = f", bus bandwidth {bandwidth:.2f} GB/s" if bandwidth is not None else ""
    messages = result["messages_per_step"]
    how = f", {messages:g} message(s) per step" if messages is not None else ""
    return f"{result['bytes_sent_per_rank'] / 1e6:,.1f} MB of gradients{how}{at}"


FEWEST_STEPS = 50
"""Steps per epoch below which a run warns."""


def step_lines(options: Options, ranks: int, images: int) -> list[str]:
    """Images per step, steps per epoch of ``images``, and how the rate is scaled: one line each."""
    schedule = options.schedule(ranks)
    factors = [f"{ranks} rank(s)", f"{options.batch_size} images"]
    if options.accumulate > 1:
        factors.append(f"{options.accumulate} batches")
    steps = steps_per_epoch(images, options.step_images, ranks)
    rate = f"learning rate {schedule.base:g}"
    if schedule.scale == 1:
        rate += ", not scaled"
    else:
        rate += f" x {schedule.scale:.4g} ({options.lr_scaling} in the ranks) = {schedule.peak:.4g}"
        rate += f", reached after {schedule.warmup_epochs:.3g} epoch(s) of warm-up"
    if options.decay != "none":
        rate += f"; {options.decay} decay"
    return [
        f"{options.step_images * ranks:,} images per step ({' x '.join(factors)}), {steps:,} steps per epoch",
        rate,
    ]


def step_warnings(options: Options, ranks: int, images: int) -> list[str]:
    """Return warnings of steps and rates that are likely to cost accuracy, with what the literature does."""
    found = []
    steps = steps_per_epoch(images, options.step_images, ranks)
    if steps < FEWEST_STEPS:
        smaller = images // (FEWEST_STEPS * ranks * options.accumulate)
        remedy = f"--batch-size {smaller} gives {FEWEST_STEPS}" if smaller else "use fewer ranks"
        found.append(text_of("few steps", steps=steps, remedy=remedy))
    growth = ranks * options.accumulate
    if growth > 1 and options.schedule(ranks).scale == 1:
        found.append(text_of("rate not scaled", growth=growth))
    return found
