"""What a run says: progress while it goes, a table at its end. Rank 0 speaks, the others are silent."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from .engine import Sums
from .run_errors import BadRequestError

_REDRAW_S = 0.1


class EventLog:
    """A file of JSON documents, one a line, each there as soon as it happened: ``--log-json``."""

    def __init__(self, path: Path, *, goes_on: bool) -> None:
        """``goes_on``: what is in the file stays, but for a last line that a killed run left unfinished.

        BadRequestError if the file cannot be written.
        """
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            kept = path.read_bytes().rfind(b"\n") + 1 if goes_on else 0
            os.ftruncate(self._file, kept)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise BadRequestError(
                f"--log-json {path}: cannot be written ({error.strerror or error})",
                "Name a file in a folder that you may write to.",
            ) from error

    def write(self, event: str, facts: Mapping[str, Any]) -> str | None:
        """Add one line; what a person should know if it cannot be written: then it was the last."""
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
    """Writes lines to a stream; a live one shows a bar below them while an epoch goes on."""

    def __init__(
        self, stream: TextIO, *, speaks: bool, live: bool = False, columns: int | None = None
    ) -> None:
        """``speaks`` False: say nothing (all ranks but 0); ``live``: ``stream`` is a person's terminal.

        ``columns``: its width, asked for if None.
        """
        self._stream = stream
        self._speaks = speaks
        self._live = live and speaks
        self._columns = columns
        self._open_line = ""
        self._drawn_at = 0.0
        self._figures = ""
        self._log: EventLog | None = None

    def keep(self, log: EventLog) -> None:
        """Tell ``log``, too, from now on; on the rank that speaks."""
        self._log = log

    def line(self, text: str) -> None:
        """One line that stays."""
        self.event("message", {"text": text})
        self._print(text)

    def event(self, event: str, facts: Mapping[str, Any]) -> None:
        """For the log alone."""
        remark = self._log.write(event, facts) if self._log else None
        if remark:
            self._print(remark)

    def advance(self, epoch: str, share: float) -> None:
        """On a terminal: ``share`` (0..1) of the epoch is done. Cheap; call it every step."""
        if self._live and time.monotonic() - self._drawn_at > _REDRAW_S:
            self._draw(epoch, share)

    def step(self, epoch: str, step: str, share: float, facts: Mapping[str, Any]) -> None:
        """The figures of the last steps: their speed, mean loss, accuracy, share of communication."""
        self.event("step", facts)
        speed, loss = f"{facts['images_per_s']:,.0f} images/s", f"loss {facts['loss']:.4f}"
        accuracy, communication = facts["accuracy"], facts["communication_share"]
        if self._live:
            self._figures = f"{speed}  {loss}  acc {accuracy:.4f}  comm {communication:.0%}"
            self._draw(epoch, share)
        else:
            figures = f"{speed}  {loss}  accuracy {accuracy:.4f}  communication {communication:.0%}"
            self._print(f"epoch {epoch}  step {step}  {figures}")

    def epoch(self, epochs: int, entry: Mapping[str, Any]) -> None:
        """The outcome of one epoch, as it stands in the history."""
        self.event("epoch", entry)
        self._print(
            f"epoch {entry['epoch']}/{epochs} done  {entry['images_per_s']:,.0f} images/s  "
            f"loss {entry['train_loss']:.4f}  accuracy {entry['train_accuracy']:.4f}  "
            f"test loss {entry['test_loss']:.4f}  test accuracy {entry['test_accuracy']:.4f}"
        )

    def table(self, result: Mapping[str, Any]) -> None:
        """The end of the run, one fact a line."""
        self.event("result", result)
        for name, value in table_rows(result).items():
            self._print(f"  {name:<15} {value}")

    def _print(self, text: str) -> None:
        if self._speaks:
            end = "\r" + " " * len(self._open_line) + "\r" if self._open_line else ""
            self._open_line = ""
            print(f"{end}{text}", file=self._stream, flush=True)

    def _draw(self, epoch: str, share: float) -> None:
        """The bar takes what room the figures leave."""
        columns = self._columns or shutil.get_terminal_size().columns
        rest = f"epoch {epoch} [] {share:4.0%}  {self._figures}"
        width = max(4, columns - 1 - len(rest))
        bar = "#" * round(share * width)
        text = f"epoch {epoch} [{bar:<{width}}] {share:4.0%}  {self._figures}"[: columns - 1]
        print(f"\r{text:<{len(self._open_line)}}", end="", file=self._stream, flush=True)
        self._open_line, self._drawn_at = text, time.monotonic()


def step_facts(
    epoch: int, step: int, images_per_s: float, communication: float, sums: Sums
) -> dict[str, Any]:
    """What `Reporter.step` shows of some steps; ``communication``: its share of their time, 0..1."""
    return {
        "epoch": epoch,
        "step": step,
        "images_per_s": images_per_s,
        "loss": sums.mean_loss,
        "accuracy": sums.accuracy,
        "communication_share": communication,
    }


def table_rows(result: Mapping[str, Any]) -> dict[str, str]:
    """The rows of the table at the end, by name."""
    rows = {
        "data": f"{result['dataset']} ({result['dataset_source']})",
        "model": f"{result['model']}, {result['parameters']:,} parameters",
        "optimizer": f"{result['optimizer']}, learning rate {result['lr']:g}",
        "ranks": f"{result['ranks']} on {len(result['hosts'])} host(s), {_exchanged_by(result)}",
        "batch": f"{result['batch_size']} images at once, {result['images_per_step']} a step",
        "steps": f"{result['steps']:,} in {len(result['history'])} epochs",
        "test accuracy": f"{result['test_accuracy']:.4f} on {result['test_images']:,} images",
        "test loss": f"{result['test_loss']:.4f}",
        "images/s": f"{result['images_per_s']:,.0f}, {result['images_per_s_of_a_rank']:,.0f} a rank",
        "efficiency": _efficiency(result),
        "time": _time(result["seconds"]),
        "sent by a rank": _sent(result),
        "parameters": f"sha256 {result['parameters_sha256'][0][:16]}..., the same on all ranks",
    }
    return {name: row for name, row in rows.items() if row}


def _exchanged_by(result: Mapping[str, Any]) -> str:
    if not result["allreduce"]:
        return str(result["comm"])
    chosen = ", ".join(sorted(set(result["allreduce_choices"].values())))
    compressed = "" if result["compression"] == "none" else f", {result['compression']}"
    return f"{result['allreduce']} allreduce{f' ({chosen})' if chosen else ''}{compressed}"


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
    beside = f"; {hidden:.1f} s of communication beside compute" if hidden else ""
    return (
        f"{seconds['training']:.1f} s of training: {shares['compute']:.0%} compute, "
        f"{shares['communication']:.0%} communication ({shares['waiting']:.0%} waiting), "
        f"{shares['data']:.0%} data{beside}"
    )


def _sent(result: Mapping[str, Any]) -> str:
    if result["bytes_sent_per_rank"] is None:
        return ""
    bandwidth = result["bus_gb_s"]
    at = f", bus bandwidth {bandwidth:.2f} GB/s" if bandwidth is not None else ""
    messages = result["messages_per_step"]
    how = f", {messages:g} message(s) a step" if messages is not None else ""
    return f"{result['bytes_sent_per_rank'] / 1e6:,.1f} MB of gradients{how}{at}"
