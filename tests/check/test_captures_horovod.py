"""The recorded builds outside of the project, each with the verdict that is expected of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.check.verdicts import check_json, names_by_status

CAPTURES = Path(os.environ["HPCLAUNCH_TEST_CAPTURES"]) / "horovod"
EXPECTED: dict[str, Any] = json.loads((CAPTURES / "expected.json").read_text())


@pytest.mark.parametrize("file", EXPECTED)
def test_each_capture_gets_its_verdict(file: str, tmp_path: Path) -> None:
    shutil.copy(CAPTURES / file, tmp_path / "check-build.txt")
    _, document = check_json("--from", str(tmp_path))
    want = EXPECTED[file]
    got = names_by_status(document)
    for status in ("have", "missing", "unknown"):
        assert got[status] == set(want[status]), status
    assert all(want["version"] in check["evidence"] for check in document["checks"])
