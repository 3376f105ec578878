"""The moving picture of the README, from real runs: ``python -m benchmarks.moving_picture``.

The scenes, one after the other: the map of a LUMI-G node, the script of a job there, and a job of two ranks
on this machine, of which rank 1 fails. docs/images/first-minute.svg is written, and
tests/test_moving_picture.py compares its words with what the commands print.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from html import escape, unescape
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "first-minute.svg"
FAILING = """\
import os
import time

for step in range(20):
    time.sleep(0.3)
    if step == 5 and os.environ["RANK"] == "1":
        open("checkpoints/step-4.pt")
"""
"""The steps take time: rank 0 must have reported its binding before MPI ends it with rank 1."""
COMMANDS = (
    "topology --site lumi-g",
    "submit --site lumi-g --account project_465000001 --framework torch --dry-run --plain -- python train.py",
    "submit --site local --tasks 2 --framework torch --wait -- python3 train.py",
    "status",
)
COLUMNS, ROWS = 120, 34
SCENE_S, LINE_S = 9.0, 0.06
"""How long a scene is shown, and the time from one of its lines to the next."""
_CHARACTER, _LINE = 7.23, 18
"""Pixels of a character and of a line of 12 px in a monospaced font."""
_MASKS = (
    (r"\d{8}-\d{6}-\w{6}", "JOB"),
    (r"\(local \d+:\d+\)", "(local PROCESS)"),
    (r"\d{4}-\d\d-\d\dT[0-9:+]+", "TIME"),
    (r"^(time +)[0-9:]+", r"\1DURATION"),
    (r"^(nodes +|rank +1 on )\S+", r"\1HOST"),
    (r"hpclaunch \d+\.\d+\.\d+\S*", "hpclaunch VERSION"),
)


class Scene(NamedTuple):
    """A command and the first lines that it prints."""

    command: str
    lines: tuple[str, ...]


def _run(words: list[str], folder: Path) -> str:
    settings = {**os.environ, "XDG_STATE_HOME": str(folder / ".local" / "state"), "COLUMNS": str(COLUMNS)}
    line = [sys.executable, "-m", "hpclaunch", *words]
    done = subprocess.run(line, cwd=folder, env=settings, capture_output=True, text=True)
    if done.returncode != int("--wait" in words):
        sys.exit(f"hpclaunch {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    # Of a job that runs here: what hpclaunch says, not what two ranks and MPI print in any order.
    return done.stderr if "--wait" in words else done.stdout


def scenes(folder: Path) -> tuple[Scene, ...]:
    """Return what the commands of the picture print, run in an empty folder."""
    (folder / "train.py").write_text(FAILING)
    shown = []
    for command in COMMANDS:
        text = _run(command.split(), folder).replace(str(folder), "/home/user")
        wrapped = [
            wrap(line, COLUMNS, drop_whitespace=False, subsequent_indent=" " * 11) or [""]
            for line in text.splitlines()
        ]
        lines = tuple(part for parts in wrapped for part in parts)
        shown.append(Scene(command, lines if len(lines) < ROWS else (*lines[: ROWS - 2], "...")))
    return tuple(shown)


def _text(row: int, start_s: float, line: str) -> str:
    """A line that appears in its turn: first the command, then what it prints."""
    kind, after_s = ("line", 0.5 + row * LINE_S) if row else ("typed line", 0.0)
    place = f'x="16" y="{26 + _LINE * row}" class="{kind}" style="animation-delay:{start_s + after_s:.2f}s"'
    return f"<text {place}>{escape(line, quote=False)}</text>"


def picture(shown: tuple[Scene, ...]) -> str:
    """Return the scenes as an SVG; whoever asks for less motion gets the last one, at rest."""
    rows = max(len(scene.lines) for scene in shown) + 1
    width, height = round(COLUMNS * _CHARACTER + 32), _LINE * rows + 28
    total = SCENE_S * len(shown)
    drawn = []
    for number, scene in enumerate(shown):
        start = number * SCENE_S
        typed = f"$ hpclaunch {scene.command}"
        texts = [_text(row, start, line) for row, line in enumerate((typed, *scene.lines))]
        drawn.append(f'<g class="scene" style="animation-delay:{start:g}s">\n' + "\n".join(texts) + "\n</g>")
    share = 100 / len(shown)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">
<title>hpclaunch: the map of a node, the script of a job, and a failed job with its cause and remedy</title>
<style>
text {{ font: 12px ui-monospace, Consolas, "DejaVu Sans Mono", monospace; fill: #e6e6e6; white-space: pre }}
.typed {{ fill: #8fd18f }}
.scene {{ visibility: hidden; animation: scene {total:g}s step-end infinite }}
.line {{ opacity: 0; animation: line {total:g}s step-end infinite }}
@keyframes scene {{ 0% {{ visibility: visible }} {share:.4g}% {{ visibility: hidden }} }}
@keyframes line {{ 0% {{ opacity: 1 }} {share:.4g}% {{ opacity: 0 }} }}
@media (prefers-reduced-motion: reduce) {{
  .scene, .line {{ animation: none; opacity: 1 }}
  .scene:last-of-type {{ visibility: visible }}
}}
</style>
<rect width="{width}" height="{height}" rx="6" fill="#1e2228"/>
{chr(10).join(drawn)}
</svg>
"""


def words(drawn: str) -> list[str]:
    """Return the lines of a picture with masks for jobs, times, the host and the version."""
    found = [unescape(text) for text in re.findall(r"<text [^>]*>(.*)</text>", drawn)]
    for pattern, name in _MASKS:
        found = [re.sub(pattern, name, line) for line in found]
    return found


def draw() -> str:
    """Run the commands in a folder of their own and return the picture."""
    with tempfile.TemporaryDirectory() as made:
        return picture(scenes(Path(made)))


if __name__ == "__main__":
    PICTURE.write_text(draw())
