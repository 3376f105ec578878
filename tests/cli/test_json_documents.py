"""The JSON of the commands fits the schemas in docs/reference/json, made from the documents' types.

After a wanted change: HPCLAUNCH_TEST_UPDATE_GOLDEN=1 pytest tests/cli/test_json_documents.py; read the diff.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner

from hpclaunch.binding import binding_documents
from hpclaunch.check import check_report, io_facts
from hpclaunch.cli.main import program
from hpclaunch.job import job_documents
from hpclaunch.json_document import document_text, field_docs, structs_in
from hpclaunch.lint import finding_report
from hpclaunch.observe import attached_ranks, job_stacks
from hpclaunch.port import port_text
from hpclaunch.probes import compare_probe
from hpclaunch.scaling import link_tests, model_table, prediction, study_report
from hpclaunch.site import site_documents
from hpclaunch.software import install_plan, site_software
from hpclaunch.timeline import timeline_documents
from hpclaunch.usage import report_documents
from tests.in_one_test import in_one_test

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "json"
DOCUMENTS: dict[str, Any] = {
    "topology": binding_documents.TopologyDocument,
    "topology-check": binding_documents.ListDocument,
    "check": check_report.Report,
    "not-submitted": check_report.NotSubmittedDocument,
    "advise-io": io_facts.IoDocument,
    "job": job_documents.JobDocument,
    "jobs": list[job_documents.JobDocument],
    "submitted-job": job_documents.SubmittedJobDocument,
    "dry-run": job_documents.DryRunDocument,
    "fetch": job_documents.FetchDocument,
    "actions": list[job_documents.ActionDocument],
    "log": job_documents.LogDocument,
    "init": job_documents.InitDocument,
    "verify": job_documents.VerifyDocument,
    "error": job_documents.ErrorDocument,
    "verify-attach": attached_ranks.AttachDocument,
    "stacks": job_stacks.StacksDocument,
    "sites-probe": compare_probe.ProbeDocument,
    "bench": link_tests.Bench,
    "predict": prediction.Prediction,
    "predict-model": model_table.ModelTable,
    "scale": study_report.StudyDocument,
    "scale-compare": list[study_report.ComparedSize],
    "sites-list": tuple[site_documents.ListedSite, ...],
    "sites-validate": tuple[site_documents.ValidatedSite, ...],
    "sites-check": site_documents.SourcesDocument,
    "sites-facts": site_documents.FactsDocument,
    "sites-detect": site_documents.DetectedSite,
    "env-plan": install_plan.InstallPlan,
    "software": site_software.SoftwareDocument,
    "timeline": timeline_documents.TimelineDocument,
    "report": report_documents.ReportDocument,
    **finding_report.DOCUMENTS,
    **port_text.DOCUMENTS,
}
"""Name of the schema -> its type, which the room that makes the document defines."""


def hpclaunch(*words: str, code: int = 0) -> bytes:
    line = [sys.executable, "-m", "hpclaunch", *words]
    answer = subprocess.run(line, capture_output=True, check=False)
    assert answer.returncode == code, answer.stderr.decode()
    return answer.stdout


def read(name: str, text: str | bytes) -> Any:
    """Return a document after a comparison with its schema: all keys, no others, values of their types."""
    document = json.loads(text)
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    assert [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(document)] == []
    found = msgspec.convert(document, DOCUMENTS[name])
    assert json.loads(document_text(found)) == document
    return found


def document_schema(document: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type that `document_text` writes, with the docs of its fields.

    All keys are always written, so all are required, unless a struct omits its defaults; others may come
    with a later version.
    """
    schema = msgspec.json.schema(document)
    for name, struct in structs_in(document).items():
        definition = schema["$defs"][name]
        definition.pop("additionalProperties", None)
        if "description" in definition:
            definition["description"] = " ".join(definition["description"].split())
        if definition["properties"] and not struct.__struct_config__.omit_defaults:
            definition["required"] = list(definition["properties"])
        docs = field_docs(struct)
        for field, about in definition["properties"].items():
            about.pop("default", None)
            if field in docs:
                about["description"] = docs[field]
    return schema


@in_one_test("name", DOCUMENTS)
def test_the_schema_is_that_of_the_type(name: str) -> None:
    text = json.dumps(document_schema(DOCUMENTS[name]), indent=2) + "\n"
    path = FOLDER / f"{name}.schema.json"
    if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text


def test_the_page_names_every_schema() -> None:
    page = (FOLDER.parent / "json.md").read_text()
    assert [name for name in DOCUMENTS if f"json/{name}.schema.json" not in page] == []
    assert {path.name.removesuffix(".schema.json") for path in FOLDER.iterdir()} == set(DOCUMENTS)


COMMANDS = {
    "check": ("check", "--site", "lumi-g", "--from", "captured"),
    "advise-io": ("advise", "io", "."),
    "lint": ("lint", "job.sh"),
    "lint-rules": ("lint", "--rules"),
    "port": ("port", "job.sh", "--to", "polaris"),
    "software": ("software", "show", "--site", "lumi-g"),
    "env-plan": ("software", "plan", "--site", "betzy", "--for", "horovod-torch", "--route", "easybuild"),
    "topology": ("topology", "--site", "lumi-g", "--tasks-per-node", "8"),
    "topology-check": ("topology", "--site", "lumi-g", "--check-map", "49,49,9999"),
    "timeline": ("timeline", str(Path(__file__).parents[1] / "data/timelines/slow-rank1-input.json")),
    "sites-list": ("sites", "list"),
    "sites-validate": ("sites", "validate", "lumi-g", "broken.yaml"),
    "sites-check": ("sites", "check", "--older-than", "0"),
    "sites-detect": ("sites", "detect"),
    "sites-facts": ("sites", "facts", "lumi-g"),
    "sites-probe": ("sites", "check", str(Path(__file__).parents[1] / "data/probes/slurm-22.05.json")),
}
"""Schema -> a command that prints it; the documents of jobs are in the tests below."""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_its_document(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH --nodez=2\nsrun ./app\n")
    (tmp_path / "broken.yaml").write_text("schema: 1\nname: broken\n")
    (tmp_path / "captured").mkdir()
    (tmp_path / "captured" / "check-build.txt").write_text("Horovod v0.28.1:\n")
    answer = CliRunner().invoke(program, [*COMMANDS[name], "--json"], catch_exceptions=False)
    assert "error" not in json.loads(answer.stdout)
    read(name, answer.stdout)


@pytest.mark.slow
def test_doctor_prints_the_document_of_a_check() -> None:
    found = read("check", hpclaunch("doctor", "--json"))
    assert {"python", "mpi", "scheduler", "ssh", "container", "site"} <= {
        check.name for check in found.checks
    }


@pytest.mark.mpi
def test_the_documents_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    submitted = read("submitted-job", hpclaunch(*words, code=1))
    assert (submitted.state, submitted.exit_code, submitted.result) == ("failed", 7, None)
    assert Path(submitted.log).read_text().startswith("ImportError: x\n")
    waited = read("submitted-job", hpclaunch("wait", "docs", "--json", code=1))
    assert waited.id == submitted.id
    status = read("job", hpclaunch("status", "docs", "--json"))
    assert status.failure is not None
    assert status.failure.lines == ("ImportError: x",)
    listed = read("jobs", hpclaunch("jobs", "--json"))
    assert [job.id for job in listed] == [status.id]
    assert read("verify", hpclaunch("verify", "docs", "--json")).ok
    error = read("error", hpclaunch("status", "nosuch", "--json", code=3))
    assert error.error.kind == "bad input"


@pytest.mark.slow
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
    document = read("dry-run", hpclaunch(*words))
    assert (document.nodes, document.limit_s, document.request["nodes"]) == (2, 7200, 2)
    assert document.request["exclusive"] is True
    assert ["no.py: there is no such file" in problem.message for problem in document.problems] == [True]
    assert document.script.startswith("#!")
    settings: dict[str, Any] = {setting.name: setting for setting in document.settings}
    assert settings["nodes"].origin == "command line"


def test_the_documents_of_scaling(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("gpus,seconds\n1,10\n2,5.5\n4,3\n4,3.1\n8,2\n")
    words = ["scale", "import", str(tmp_path / "times.csv"), "--kind", "strong", "--json"]
    read("scale", CliRunner().invoke(program, words).stdout)
    words = ["predict", "--site", "abci", "--model", "vgg16", "--batch-per-worker", "512", "--gpus", "8,16"]
    read("predict", CliRunner().invoke(program, [*words, "--json"]).stdout)
