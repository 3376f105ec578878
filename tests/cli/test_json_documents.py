"""The JSON of the commands about jobs fits the schemas in docs/reference/json, made from their types.

After a wanted change: HPCLAUNCH_TEST_UPDATE_GOLDEN=1 pytest tests/cli/test_json_documents.py; read the diff.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpclaunch.job.job_documents import (
    DOCUMENTS,
    DryRunDocument,
    ErrorDocument,
    JobDocument,
    SubmittedJobDocument,
)

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "json"


def hpclaunch(*words: str, code: int = 0) -> bytes:
    line = [sys.executable, "-m", "hpclaunch", *words]
    answer = subprocess.run(line, capture_output=True, check=False)
    assert answer.returncode == code, answer.stderr.decode()
    return answer.stdout


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_schema_is_that_of_the_type(name: str) -> None:
    text = json.dumps(msgspec.json.schema(DOCUMENTS[name]), indent=2) + "\n"
    path = FOLDER / f"{name}.schema.json"
    if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text


def test_the_page_names_every_schema() -> None:
    page = (FOLDER.parent / "json.md").read_text()
    assert [name for name in DOCUMENTS if f"json/{name}.schema.json" not in page] == []


@pytest.mark.mpi
def test_the_documents_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown, missing and wrongly typed keys are refused."""
    monkeypatch.chdir(tmp_path)
    words = (
        "submit",
        "--site",
        "local",
        "--json",
        "--name",
        "docs",
        "--",
        "sh",
        "-c",
        "echo ImportError: x; exit 7",
    )
    submitted = msgspec.json.decode(hpclaunch(*words, code=1), type=SubmittedJobDocument)
    assert (submitted.state, submitted.exit_code, submitted.result) == ("failed", 7, None)
    assert Path(submitted.log).read_text() == "ImportError: x\n"
    waited = msgspec.json.decode(hpclaunch("wait", "docs", "--json", code=1), type=SubmittedJobDocument)
    assert waited.id == submitted.id
    status = msgspec.json.decode(hpclaunch("status", "docs", "--json"), type=JobDocument)
    assert status.failure is not None
    assert status.failure.lines == ("ImportError: x",)
    listed = msgspec.json.decode(hpclaunch("jobs", "--json"), type=list[JobDocument])
    assert [job.id for job in listed] == [status.id]
    error = msgspec.json.decode(hpclaunch("status", "nosuch", "--json", code=3), type=ErrorDocument)
    assert error.error.kind == "bad input"


@pytest.mark.parametrize(
    "options", [("--site", "generic-slurm"), ("--site", "lumi-g", "--account", "project_465000001")]
)
def test_the_document_of_a_dry_run(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = (
        "submit",
        *options,
        "--nodes",
        "2",
        "--time",
        "2h",
        "--dry-run",
        "--json",
        "--",
        "python",
        "no.py",
    )
    document = msgspec.json.decode(hpclaunch(*words), type=DryRunDocument)
    assert (document.nodes, document.limit_s, document.request["nodes"]) == (2, 7200, 2)
    assert document.request["exclusive"] is True
    assert ["no.py: there is no such file" in problem.message for problem in document.problems] == [True]
    assert document.script.startswith("#!")
    settings: dict[str, Any] = {setting.name: setting for setting in document.settings}
    assert settings["nodes"].origin == "command line"
