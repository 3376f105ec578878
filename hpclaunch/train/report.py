"""What a run says: progress while it goes, a table at its end. Rank 0 speaks, the others are silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from .engine import Sums


class Reporter:
    """Writes lines to a stream; a live one shows a step's progress over the last step's."""

    def __init__(self, stream: TextIO, *, speaks: bool, live: bool = False) -> None:
        """``speaks`` False: say nothing (all ranks but 0); ``live``: ``stream`` is a person's terminal."""
        self._stream = stream
        self._speaks = speaks
        self._live = live
        self._open_line = ""

    def line(self, text: str) -> None:
        """One line that stays."""
        if self._speaks:
            end = "\r" + " " * len(self._open_line) + "\r" if self._open_line else ""
            self._open_line = ""
            print(f"{end}{text}", file=self._stream, flush=True)

    def step(self, epoch: str, step: str, images_per_s: float, sums: Sums) -> None:
        """Progress within an epoch: speed, and mean loss and accuracy over ``sums``."""
        text = (
            f"epoch {epoch}  step {step}  {images_per_s:,.0f} images/s  "
            f"loss {sums.mean_loss:.4f}  accuracy {sums.accuracy:.4f}"
        )
        if not self._live:
            self.line(text)
        elif self._speaks:
            print(f"\r{text:<{len(self._open_line)}}", end="", file=self._stream, flush=True)
            self._open_line = text

    def epoch(self, epochs: int, entry: Mapping[str, Any]) -> None:
        """The outcome of one epoch, as it stands in the history."""
        self.line(
            f"epoch {entry['epoch']}/{epochs} done  {entry['images_per_s']:,.0f} images/s  "
            f"loss {entry['train_loss']:.4f}  accuracy {entry['train_accuracy']:.4f}  "
            f"test loss {entry['test_loss']:.4f}  test accuracy {entry['test_accuracy']:.4f}"
        )

    def table(self, result: Mapping[str, Any]) -> None:
        """The end of the run, one fact a line."""
        seconds = result["seconds"]
        share = seconds["communication"] / max(seconds["training"], 1e-9)
        sent = result["bytes_sent_per_rank"]
        how = f"{result['allreduce']} allreduce" if result["allreduce"] else result["comm"]
        rows = {
            "data": f"{result['dataset']} ({result['dataset_source']})",
            "model": f"{result['model']}, {result['parameters']:,} parameters",
            "optimizer": f"{result['optimizer']}, learning rate {result['lr']:g}",
            "ranks": f"{result['ranks']} on {len(result['hosts'])} host(s), {how}",
            "batch": f"{result['batch_size']} images a rank, {result['images_per_step']:,} a step",
            "steps": f"{result['steps']:,} in {len(result['history'])} epochs",
            "test accuracy": f"{result['test_accuracy']:.4f} on {result['test_images']:,} images",
            "test loss": f"{result['test_loss']:.4f}",
            "images/s": f"{result['images_per_s']:,.0f}",
            "time": f"{seconds['training']:.1f} s of training, {share:.0%} of it in communication",
            "sent by a rank": "not known" if sent is None else f"{sent / 1e6:,.1f} MB of gradients",
            "parameters": f"sha256 {result['parameters_sha256'][0][:16]}..., the same on all ranks",
        }
        for name, value in rows.items():
            self.line(f"  {name:<15} {value}")
