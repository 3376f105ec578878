"""Staging on one machine: each node has its own folder, and so its own target."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hpclaunch.package_data import resource_dir

STAGE = str(resource_dir("remote") / "stage.py")


class Nodes:
    """Some nodes of a job whose folder is ``job``; the target is called ``name`` on each."""

    def __init__(self, base: Path, count: int, name: str = "data", job: str = "job") -> None:
        self.targets = [base / f"node{number}" / "local" / name for number in range(count)]
        self.job = base / job
        self.job.mkdir(parents=True, exist_ok=True)

    def start(
        self, source: Path | str, afterwards: str = "leave", links: str = "refuse", **environment: str
    ) -> tuple[subprocess.Popen[str], list[subprocess.Popen[str]]]:
        """The reader, and a process per node."""
        control, nodes = self.start_nodes(source, afterwards, **environment)
        target, count = str(self.targets[0]), str(len(nodes))
        launcher = str(nodes[0].pid)
        return _popen("reader", control, count, launcher, links, str(source), target, **environment), nodes

    def start_nodes(
        self, source: Path | str, afterwards: str = "leave", **environment: str
    ) -> tuple[str, list[subprocess.Popen[str]]]:
        """A folder through which processes find each other, and a process per node."""
        control, count = tempfile.mkdtemp(prefix="staging.", dir=self.job), str(len(self.targets))
        return control, [
            _popen("node", control, count, afterwards, "-", str(source), str(target), **environment)
            for target in self.targets
        ]

    def stage(
        self, source: Path | str, afterwards: str = "leave", links: str = "refuse", **environment: str
    ) -> tuple[int, str, str]:
        """Run it to its end: the reader's exit status, stdout, stderr."""
        reader, nodes = self.start(source, afterwards, links, **environment)
        output, errors = reader.communicate(timeout=120)
        for node in nodes:
            node.communicate(timeout=120)
        return reader.returncode, output, errors

    def remove(self, source: Path) -> None:
        """What the script does at the end of a job."""
        control = tempfile.mkdtemp(prefix="staging.", dir=self.job)
        for target in self.targets:
            removed = _popen("remove", control, "1", "-", "-", str(source), str(target))
            assert removed.wait(timeout=60) == 0

    def leftovers(self) -> list[str]:
        """What is next to the targets, but for the records of whole copies."""
        return [
            path.name
            for target in self.targets
            for path in (target.parent.iterdir() if target.parent.exists() else ())
            if path != target and path.name != f".{target.name}.staged.json"
        ]


def _popen(*argv: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        # Jobs run one text of all its files (tests/job/test_staging.py), which each process would compile.
        [sys.executable, "-S", "-m", "hpclaunch.remote.stage", *argv],
        env={**os.environ, "PYTHONPATH": str(resource_dir("remote").parents[1]), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def content(path: Path) -> dict[str, str]:
    """What is in a file or folder: names, modes, links, digests."""
    if not path.is_dir():
        return {"": hashlib.sha256(path.read_bytes()).hexdigest()}
    found = {}
    for inner in sorted(path.rglob("*")):
        name = str(inner.relative_to(path))
        if inner.is_symlink():
            found[name] = f"link to {os.readlink(inner)}"
        elif inner.is_dir():
            found[name] = f"folder {inner.stat().st_mode & 0o777:o}"
        else:
            digest = hashlib.sha256(inner.read_bytes()).hexdigest()
            found[name] = f"file {inner.stat().st_mode & 0o777:o} {digest}"
    return found


def make_data_set(folder: Path, sizes: Sequence[int] = (1_200_000, 5, 0)) -> Path:
    """A folder with files, empty ones, links and a program; by default two blocks travel."""
    (folder / "train" / "0").mkdir(parents=True)
    (folder / "empty").mkdir()
    for number, size in enumerate(sizes):
        repeated = os.urandom(999_983)  # prime: exchanged blocks would show
        with (folder / "train" / f"{number} of 'all'.bin").open("wb") as file:
            for start in range(0, size, len(repeated)):
                file.write(repeated[: size - start])
    (folder / "train" / "0" / "small").write_text("1")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "newest").symlink_to("train/0")
    (folder / "nowhere").symlink_to("/missing")
    os.link(folder / "run", folder / "same")
    return folder
