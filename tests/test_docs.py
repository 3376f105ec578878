"""Every command shown in the docs is run.

A page's ``bash`` blocks run in their order, in one folder, with ``set -e``. A block after the line
``<!-- prints -->`` is compared with the output of the block before it: each of its lines must be there, and
``...`` stands for any text. Pages of real machines show dry runs, which a laptop can run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.in_one_test import in_one_test

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "AGENTS.md", ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"(<!-- prints -->\n)?```(\w*)\n(.*?)```", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str | None]]:
    """Return (commands, what they must print or None) for the page's bash blocks."""
    found: list[tuple[str, str | None]] = []
    for prints, language, text in BLOCK.findall(page.read_text()):
        if prints:
            found[-1] = (found[-1][0], text)
        elif language == "bash":
            found.append((text, None))
    return found


def assert_printed(output: str, commands: str, prints: str | None) -> None:
    """Each line that the page shows after the commands is in their output."""
    for line in (prints or "").splitlines():
        pattern = ".*".join(map(re.escape, line.strip().split("...")))
        assert re.search(pattern, output), f"{commands}\nprinted\n{output}\nwithout\n{line}"


# The newcomer of test_docs_site.py follows the tutorial, which begins with README's first command.
ELSEWHERE = {ROOT / "README.md", ROOT / "docs" / "tutorial.md"}
PAGES_WITH_COMMANDS = [page for page in PAGES if blocks(page) and page not in ELSEWHERE]


@pytest.mark.mpi
@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_the_page_run(page: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Pages use the cache of all tests: the first command that reads a profile is the newcomer's.
    own = ("XDG_CONFIG_", "XDG_STATE_", "XDG_DATA_")
    outer = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment = {**outer, "HOME": str(tmp_path), "PATH": path, "COLUMNS": "110"}
    for commands, prints in blocks(page):
        answer = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", commands],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, f"{commands}\n{answer.stdout}\n{answer.stderr}"
        assert_printed(answer.stdout, commands, prints)


@in_one_test("page", PAGES)
def test_links_between_pages_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page}: {target}"
