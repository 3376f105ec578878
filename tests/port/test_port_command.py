"""The command ``hpclaunch port``: its files, its document, its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hpclaunch.cli.main import program
from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import DATA

MASKS = DATA / "script.lumi-masks-twin.sh"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def port(*words: str | Path) -> Result:
    return CliRunner().invoke(program, ["port", *map(str, words)])


def document(*words: str | Path) -> dict[str, Any]:
    answer = port(*words, "--json")
    assert answer.exit_code == 0, answer.output
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def test_the_document_has_its_keys_and_absolute_paths_below_output(tmp_path: Path) -> None:
    found = document(MASKS, "--to", "polaris", "--output", "new/folder")
    assert list(found) == ["kept", "changed", "left_out", "job_file", "script"]
    assert {tuple(one) for one in found["kept"]} <= {("line", "text")}
    assert {tuple(one) for one in found["changed"]} == {("line", "text", "to", "why", "source")}
    assert {tuple(one) for one in found["left_out"]} == {("line", "text", "why")}
    folder = tmp_path / "new" / "folder"
    assert [Path(found["job_file"]).parent, Path(found["script"]).parent] == [folder, folder]


def test_the_job_file_renders_to_the_script_and_the_script_lints_clean() -> None:
    found = document(MASKS, "--to", "polaris", "--output", "new")
    shown = CliRunner().invoke(program, ["submit", "--file", found["job_file"], "--dry-run"])
    assert (shown.exit_code, shown.stdout) == (0, Path(found["script"]).read_text())
    linted = CliRunner().invoke(program, ["lint", "--site", "polaris", "--json", found["script"]])
    assert [one for one in json.loads(linted.stdout)["findings"] if one["severity"] != "note"] == []


def test_the_report_lists_every_line_and_what_is_to_do() -> None:
    answer = port(MASKS, "--to", "polaris")
    assert answer.exit_code == 0
    assert "  17  if srun --cpu-bind=mask_cpu:$MASK python -u train.py" in answer.output
    assert "to do before it is submitted:\n  - account: FILL_IN_ACCOUNT is a placeholder" in answer.output
    assert Path("script.lumi-masks-twin-polaris/job.yaml").exists()


def test_the_difference_of_the_scripts() -> None:
    answer = port(MASKS, "--to", "polaris", "--diff")
    assert "\n-#SBATCH --nodes=2\n" in answer.output
    assert "\n+#PBS -l select=4:system=polaris\n" in answer.output


def test_files_that_were_there_before_are_kept() -> None:
    document(MASKS, "--to", "polaris", "--output", "new")
    Path("new/job.yaml").write_text("account: mine\n")
    answer = port(MASKS, "--to", "polaris", "--output", "new")
    assert "job.yaml was there before; it is job.yaml.1 now" in answer.stderr
    assert Path("new/job.yaml.1").read_text() == "account: mine\n"
    assert not Path("new/job.sh.1").exists()


def test_the_machine_may_be_named_and_must_fit() -> None:
    assert document(MASKS, "--from", "lumi-g", "--to", "olivia")["changed"]
    answer = port(MASKS, "--from", "polaris", "--to", "olivia")
    assert answer.exit_code == 3
    assert f"{MASKS}: line 2: #SBATCH is not a directive of polaris" in answer.stderr


def test_a_profile_in_a_file_is_a_target() -> None:
    Path("mine.yaml").write_text("schema: 1\nname: mine\nextends: generic-slurm\ndescription: mine\n")
    found = document(MASKS, "--to", "./mine.yaml", "--output", "new")
    assert CliRunner().invoke(program, ["submit", "--file", found["job_file"], "--dry-run"]).exit_code == 0


@in_one_test(
    "data, where",
    [
        (b"#!/bin/bash\n#SBATCH -N 1\nsrun ./a\0b\n", "line 3: a NUL byte"),
        (b"#!/bin/bash\n#SBATCH -J caf\xe9\nsrun ./a\n", "line 2: not UTF-8"),
        (b"#!/bin/bash\n#SBATCH -N 1\necho 'a\nsrun ./a\n", "line 3: unexpected EOF while looking for"),
        (b"#!/bin/csh\n#SBATCH -N 1\nsrun ./a\n", "line 1: #!/bin/csh: only scripts of sh and bash"),
        (b"#!/usr/bin/env python3\n#SBATCH -N 1\nprint()\n", "line 1: #!/usr/bin/env python3"),
        (b" \n", "line 1: the script is empty"),
        (b"notes\nabout a job\n", "line 1: the text has no directives"),
    ],
)
def test_a_script_that_cannot_be_read_says_where(data: bytes, where: str) -> None:
    Path("job.sh").write_bytes(data)
    answer = port("job.sh", "--to", "polaris", "--json")
    assert answer.exit_code == 3
    assert f"job.sh: {where}" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert json.loads(answer.stdout)["error"]["exit_code"] == 3
    assert not Path("job-polaris").exists()


@pytest.mark.parametrize("script", ["missing.sh", "."])
def test_a_file_that_cannot_be_opened(script: str) -> None:
    answer = port(script, "--to", "polaris")
    assert answer.exit_code == 3
    assert f"{script}: cannot be read" in answer.stderr


def test_an_output_that_is_no_folder() -> None:
    Path("file").write_text("")
    answer = port(MASKS, "--to", "polaris", "--output", "file/below")
    assert answer.exit_code == 3
    assert "name a folder that can be written" in answer.stderr


@in_one_test("submit, code", [("sbatch <<EOF", 3), ("cat <<EOF | sbatch", 3), ("cat > job.txt <<EOF", 0)])
def test_a_text_that_is_submitted_is_to_be_ported_by_itself(submit: str, code: int) -> None:
    Path("a.sh").write_text(f"#!/bin/bash\n{submit}\n#!/bin/bash\n#SBATCH --nodes=2\nsrun ./a\nEOF\n")
    answer = port("a.sh", "--to", "polaris")
    assert answer.exit_code == code
    assert ("only submits jobs" in answer.output and "its here-documents, as files" in answer.output) == bool(
        code
    )
