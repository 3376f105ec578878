"""The parts of a release that .ci/release makes: the CHANGELOG it cuts, the Pythons it promises."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from hpclaunch import __version__

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "packaging" / "cut_changelog.py"
cut = runpy.run_path(str(SCRIPT))["cut"]

BEFORE = """# Changelog

Words.

## [Unreleased]

### Fixed

- last fix,
  in two lines

### Added

- last thing

## [0.3.0] - unreleased

### Added

- first thing

### Removed

- gone

## [0.2.0] - 2026-11-01

### Added

- old
"""
AFTER = """# Changelog

Words.

## [Unreleased]

## [0.3.0] - 2026-11-25

### Added

- first thing
- last thing

### Removed

- gone

### Fixed

- last fix,
  in two lines

## [0.2.0] - 2026-11-01

### Added

- old
"""


def test_what_is_unreleased_gets_its_version_and_day() -> None:
    assert cut(BEFORE, "0.3.0", "2026-11-25") == AFTER
    without_heading = BEFORE.replace("## [0.3.0] - unreleased\n\n### Added\n\n- first thing\n\n", "")
    assert "## [0.4.0] - 2026-11-25\n\n### Fixed\n\n- last fix" in cut(without_heading, "0.4.0", "2026-11-25")


@pytest.mark.parametrize(
    ("text", "version", "day", "words"),
    [
        (BEFORE, "0.2.0", "2026-11-25", "0.2.0 was released"),
        (AFTER, "0.4.0", "2026-11-25", "nothing is listed"),
        (BEFORE.replace("[Unreleased]", "Next"), "0.3.0", "2026-11-25", "there is no heading"),
        (BEFORE.replace("### Fixed\n", ""), "0.3.0", "2026-11-25", "above the first heading"),
        (BEFORE, "0.3.0", "tomorrow", "is no day"),
    ],
)
def test_what_cannot_be_cut_is_said(tmp_path: Path, text: str, version: str, day: str, words: str) -> None:
    file = tmp_path / "CHANGELOG.md"
    file.write_text(text)
    done = subprocess.run(
        ["python3", SCRIPT, file, version, day], capture_output=True, text=True, check=False
    )
    assert (done.returncode, file.read_text()) == (1, text)
    assert words in done.stderr


def test_our_own_changelog_can_be_cut_and_loses_no_entry() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    after = cut(text, __version__, "2026-11-25")
    assert f"## [{__version__}] - 2026-11-25\n" in after
    entries = re.compile(r"(?m)^- .*$")
    assert sorted(entries.findall(after)) == sorted(entries.findall(text))


def test_a_release_refuses_what_is_not_committed_and_a_folder_that_exists(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    for name in ("release", "stages.sh"):
        shutil.copy(ROOT / ".ci" / name, checkout / ".ci")
    subprocess.run(["git", "init", "-q", checkout], check=True)
    taken = subprocess.run([checkout / ".ci/release", tmp_path], capture_output=True, text=True, check=False)
    assert taken.returncode == 2
    assert "must not exist" in taken.stderr
    words = [checkout / ".ci/release", tmp_path / "out"]
    dirty = subprocess.run(words, capture_output=True, text=True, check=False)
    assert dirty.returncode == 1
    assert "changes that are not committed" in dirty.stderr
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
def test_the_pythons_that_are_promised_are_those_that_ci_runs() -> None:
    """The tests and the release run under the Python of each classifier; one that is not here ends them."""
    text = (ROOT / "pyproject.toml").read_text()
    promised = re.findall(r"Python :: (3\.\d+)", text)
    assert f'requires-python = ">={promised[0]}"' in text
    code = "source .ci/stages.sh; trap - EXIT; interpreters"
    listed = subprocess.run(["bash", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    found = [
        subprocess.check_output([python, "-c", code], text=True).strip()
        for python in listed.stdout.splitlines()
    ]
    assert found == promised[: len(found)]
    assert (listed.returncode == 0) == (found == promised)
    assert ("is not on this machine" in listed.stderr) == (found != promised)
