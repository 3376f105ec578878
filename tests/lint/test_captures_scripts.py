"""Every defect planted in the recorded broken scripts is found, at one of its lines."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.lint.cases import findings

pytestmark = pytest.mark.slow

SCRIPTS = Path(os.environ["HPCLAUNCH_TEST_CAPTURES"]) / "scripts"
EXPECTED: dict[str, Any] = {
    name: entry
    for name, entry in json.loads((SCRIPTS / "expected.json").read_text()).items()
    if name != "about"
}
DEFECTS = [(name, lines, pattern) for name, entry in EXPECTED.items() for lines, pattern in entry["defects"]]


@pytest.mark.parametrize(("name", "lines", "pattern"), DEFECTS)
def test_planted_defect_is_found(name: str, lines: list[int | None], pattern: str, tmp_path: Path) -> None:
    found = findings((SCRIPTS / name).read_text(), EXPECTED[name]["site"], tmp_path)
    at_line = [one for one in found if one.line in lines]
    assert [one for one in at_line if re.search(pattern, one.rule) or re.search(pattern, one.message)], found


def test_every_script_was_expected() -> None:
    assert {path.name for path in SCRIPTS.glob("*.sh")} == set(EXPECTED)
