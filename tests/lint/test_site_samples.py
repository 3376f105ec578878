"""Lint finds nothing in the forms of scripts that sites document, written in our words.

Each file of tests/data/site_samples is named SITE.FORM.sh; its last line says whose form it is.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.in_one_test import in_one_test
from tests.lint.cases import findings

SAMPLES = sorted((Path(__file__).parent.parent / "data" / "site_samples").glob("*.sh"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_nothing_is_found_in_what_a_site_documents(path: Path, tmp_path: Path) -> None:
    assert findings(path.read_text(), path.stem.partition(".")[0], tmp_path) == ()


@in_one_test("path", SAMPLES)
def test_every_sample_says_whose_form_it_is(path: Path) -> None:
    assert re.fullmatch(r"# .*\.", path.read_text().splitlines()[-1])
