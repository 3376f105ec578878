"""The pictures of the documentation, from real runs: ``python -m benchmarks.pictures [status] [timeline]``.

``status``: a job of four ranks of PyTorch (gloo) under a Slurm of its own (the tests' testbed, as root or
where user namespaces are allowed), of which rank 2 fails; HPCLAUNCH_TEST_FRAMEWORKS names the virtual
environment with PyTorch (tests/frameworks/build.sh). ``timeline``: the page of a Horovod training of four
ranks on this machine, of which one is late in each step (tests/timeline/ranks/horovod_fault.py;
HPCLAUNCH_TEST_HOROVOD names the virtual environment with Horovod, tests/horovod/build.sh torch); chromium
takes the picture. Written are docs/images/status-failed.svg and docs/images/timeline-page.png.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from html import escape
from pathlib import Path

from tests.testbed.cluster import Slurm

IMAGES = Path(__file__).parents[1] / "docs" / "images"
HOROVOD = Path(__file__).parents[1] / "tests" / "timeline" / "ranks" / "horovod_fault.py"
OURS = (sys.executable, "-m", "hpclaunch")
FAILING = """\
import os

import torch
import torch.distributed as dist


def read(path):
    return torch.load(path)


def main():
    dist.init_process_group("gloo")
    for step in range(20):
        gradient = torch.ones(1000)
        if step == 5 and dist.get_rank() == 2:
            read("checkpoints/step-4.pt")
        dist.all_reduce(gradient)
        print(f"step {step}", flush=True)


main()
"""
COLUMNS = 108
TYPED = ' class="typed"'
_CHARACTER, _LINE = 7.23, 18
"""Pixels of a character and of a line of 12 px in a monospaced font."""


def run(*words: str, folder: Path) -> str:
    """Run hpclaunch and return its stdout, whatever its exit status."""
    done = subprocess.run([*OURS, *words], cwd=folder, capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"hpclaunch {' '.join(words)}: {done.stderr}")
    return done.stdout


def failed_job(folder: Path, python: str) -> str:
    """Submit the failing program to Slurm, wait for its end and return the id of the job."""
    (folder / "train.py").write_text(FAILING)
    words = (
        "--site",
        "generic-slurm",
        "--nodes",
        "2",
        "--tasks-per-node",
        "2",
        "--mpi",
        "none",
        "--binding",
        "off",
    )
    submit = ("submit", *words, "--wait", "--json", "--", python, "train.py")
    return str(json.loads(run(*submit, folder=folder))["id"])


def terminal(command: str, text: str) -> str:
    """Return an SVG of a terminal with a command and what it printed."""
    lines = [f"$ {command}"]
    for line in text.splitlines():
        lines += textwrap.wrap(line, COLUMNS, subsequent_indent=" " * 9, drop_whitespace=False) or [""]
    width, height = round(COLUMNS * _CHARACTER + 32), _LINE * len(lines) + 28
    rows = "\n".join(
        f'<text x="16" y="{26 + _LINE * number}"{TYPED if number == 0 else ""}>{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">
<title>{escape(command)}</title>
<style>text {{ font: 12px ui-monospace, Consolas, "DejaVu Sans Mono", monospace; fill: #e6e6e6 }}
text {{ white-space: pre }}
.typed {{ fill: #8fd18f }}</style>
<rect width="{width}" height="{height}" rx="6" fill="#1e2228"/>
{rows}
</svg>
"""


def picture_of_status(folder: Path) -> None:
    """Draw what ``hpclaunch status`` prints of a failed job of four ranks."""
    python = str(Path(os.environ["HPCLAUNCH_TEST_FRAMEWORKS"]) / "bin" / "python")
    cluster = Slurm()
    try:
        cluster.start()
        os.environ.update(cluster.environment())
        job = failed_job(folder, python)
        said = run("status", job, folder=folder)
    finally:
        cluster.stop()
    # Paths as a person's job has them; the temporary folder has other names.
    ours = {f"{folder}/state": "/home/user/.local/state", str(folder): "/home/user/project"}
    for path, name in ours.items():
        said = said.replace(path, name)
    (IMAGES / "status-failed.svg").write_text(terminal(f"hpclaunch status {job}", said))


def picture_of_timeline(folder: Path) -> None:
    """Photograph the page of a Horovod training of four ranks, of which one is late in each step."""
    venv = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"])
    settings = {"HOROVOD_TIMELINE": str(folder / "timeline.json"), "HOROVOD_CACHE_CAPACITY": "0"}
    settings["PATH"] = f"{venv / 'bin'}:{os.environ['PATH']}"
    words = ("horovodrun", "--gloo", "-np", "4", "python", str(HOROVOD), "4", "256", "0", "0.1", "50")
    subprocess.run(words, env={**os.environ, **settings}, check=True, capture_output=True)
    page = folder / "page.html"
    run("timeline", "timeline.json", "--html", str(page), folder=folder)
    picture = IMAGES / "timeline-page.png"
    browser = (
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--hide-scrollbars",
    )
    quiet = ("--disable-background-networking", f"--user-data-dir={folder / 'browser'}")
    size = (f"--screenshot={picture}", "--window-size=960,1000")
    subprocess.run((*browser, *quiet, *size, page.as_uri()), check=True, capture_output=True)


def main() -> None:
    """Draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pictures", nargs="*", metavar="PICTURE", default=["status", "timeline"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        os.environ["XDG_STATE_HOME"] = f"{made}/state"
        for name in given.pictures:
            {"status": picture_of_status, "timeline": picture_of_timeline}[name](Path(made))


if __name__ == "__main__":
    main()
