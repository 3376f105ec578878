"""Settings from the command line, a job file and the user's config: precedence, origins, reference page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin

import msgspec
import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.job.settings_files import read_layers
from hpclaunch.plan import settings_table
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.request_texts import check_secrets
from hpclaunch.plan.settings import JobSettings, Layer, merge
from hpclaunch.plan.settings_table import Row, rows
from hpclaunch.scheduler.pbs import SCHEDULER as PBS
from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from tests.in_one_test import in_one_test

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "job.md"
TYPES = {str: "text", int: "whole number", bool: "true or false"}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "hpclaunch"
    folder.mkdir(parents=True)
    return folder / "config.yaml"


def merged(line: JobSettings, file: Path | None = None) -> tuple[JobRequest, dict[str, Setting]]:
    request, settings = merge(read_layers(line, file), "lumi-g", "command line")
    return request, {setting.name: setting for setting in settings}


def test_command_line_over_file_over_site_over_config(config: Path, tmp_path: Path) -> None:
    config.write_text(
        "nodes: 1\naccount: everywhere\ntime: 10m\nname: low\nsites: {lumi-g: {account: here, time: 20m}}\n"
    )
    file = tmp_path / "job.yaml"
    file.write_text("site: lumi-g\ncommand: [python, train.py]\ntime: 30m\nnodes: 3\n")
    request, settings = merged(JobSettings(nodes=4), file)
    assert (request.nodes, request.time, request.account, request.name) == (4, "30m", "here", "low")
    assert settings["nodes"].origin == "command line"
    assert settings["time"].origin == f"job file {file}"
    assert settings["account"].origin == f"user config {config}, sites.lumi-g"
    assert settings["name"].origin == f"user config {config}"
    assert settings["threads-per-core"].origin == "default"


def test_env_merges_and_directives_add_up(config: Path, tmp_path: Path) -> None:
    config.write_text("directives: [--mail-type=END]\nenv: {A: low, B: low}\n")
    file = tmp_path / "job.yaml"
    file.write_text("env: {B: high}\n")
    line = JobSettings(command=("true",), directives=("--nice",))
    request, settings = merged(line, file)
    assert request.directives == ("--mail-type=END", "--nice")
    assert request.env == {"A": "low", "B": "high"}
    assert settings["env B"].origin == f"job file {file}"


def test_the_name_follows_the_command() -> None:
    assert merged(JobSettings(command=("mnist", "--epochs", "1")))[0].name == "mnist"
    assert merged(JobSettings(command=("/opt/my prog.py",)))[0].name == "my-prog"
    assert merged(JobSettings(command=("python3", "-u", "src/train.py", "--lr", "1")))[0].name == "train"
    assert merged(JobSettings(command=("python", "-m", "lib.train")))[0].name == "train"
    assert merged(JobSettings(command=("python", "-c", "pass")))[0].name == "python"
    assert merged(JobSettings(command=("./a.out", "x.py")))[0].name == "a.out"
    assert merged(JobSettings(command=("$",)))[0].name == "job"


def test_mnist_is_the_bundled_runner_and_its_arguments_stay() -> None:
    request, _ = merged(JobSettings(command=("mnist", "--data", "a b")))
    assert request.command.bundled
    assert request.command.argv == ("--data", "a b")
    assert not merged(JobSettings(command=("./mnist",)))[0].command.bundled


def test_nothing_to_run_is_said() -> None:
    with pytest.raises(BadInputError, match="no command was given"):
        merged(JobSettings())


@pytest.mark.parametrize("name", ["WANDB_API_KEY", "HF_TOKEN", "MY_PASSWORD", "client_secret", "PGPASSWORD"])
def test_secrets_are_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(f"command: [a]\nenv: {{{name}: hunter2}}\n")
    request, settings = merge(read_layers(JobSettings(), file), "lumi-g", "command line")
    for scheduler, words in ((SLURM, "export {} in the shell that submits"), (PBS, "--directive '-v {}'")):
        with pytest.raises(BadInputError, match="looks like a secret") as error:
            check_secrets(request, settings, scheduler)
        assert str(error.value).startswith(f"job file {file}: env {name}")
        assert words.format(name) in str(error.value)
        assert "hunter2" not in str(error.value)


@in_one_test("name", ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "TOKEN_LIMIT", "SECRETS_FILE"])
def test_other_names_are_no_secrets(name: str) -> None:
    request, settings = merge(
        [Layer(origin="command line", settings=JobSettings(command=("a",), env={name: "1"}))], "x", "y"
    )
    check_secrets(request, settings, SLURM)


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("nodes: 1\ntask_per_node: 3\n", 2, "tasks_per_node"),
        ("nodes: many\n", 1, "nodes"),
        ("nodes: 1\nnodes: 2\n", 2, "nodes"),
        ("a: [", 2, ""),
    ],
)
def test_a_bad_job_file_is_refused_with_its_line(tmp_path: Path, text: str, line: int, found: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text)
    with pytest.raises(BadInputError) as error:
        merged(JobSettings(command=("a",)), file)
    assert f"{file}:{line}" in str(error.value)
    assert found in str(error.value)


def test_an_unknown_key_is_said_of_the_right_file(config: Path, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("nods: 1\n")
    with pytest.raises(BadInputError, match=r"unknown key 'nods' in the job file; did you mean 'nodes'"):
        merged(JobSettings(command=("a",)), file)
    config.write_text("nods: 1\n")
    with pytest.raises(BadInputError, match=r"config\.yaml:1: unknown key 'nods' in the configuration"):
        merged(JobSettings(command=("a",)))


def test_settings_are_shown_in_words() -> None:
    line = JobSettings(command=("a",), exclusive=False, env={"WANDB_MODE": "offline"}, after=("1", "2"))
    settings = merged(line)[1]
    assert settings["exclusive"].value == "no"
    assert settings["env WANDB_MODE"].value == "offline"
    assert settings["after"].value == "1,2"


def test_a_missing_job_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"nosuch\.yaml"):
        merged(JobSettings(), tmp_path / "nosuch.yaml")


def documented(row: Row) -> str:
    """The line of the reference page about one setting."""
    kind = get_origin(row.kind) or row.kind
    choices = ", ".join(f"`{choice}`" for choice in get_args(row.kind))
    value = choices if kind is Literal else {tuple: "list", dict: "mapping"}.get(kind) or TYPES.get(kind, "")
    value = {"command": "list", "environment": "[mapping](checks.md#the-software-environment)"}.get(
        row.name, value
    )
    names = row.options or (f"--{row.name.replace('_', '-')}",) if row.group else ()
    default = {"yes": "true", "no": "false"}.get(row.default_text, row.default_text)
    cells = (f"`{row.name}`", ", ".join(f"`{name}`" for name in names), value, default, row.help)
    return "| " + " | ".join(cells).replace("|  |", "| |") + " |"


def test_the_reference_page_is_fresh() -> None:
    """HPCLAUNCH_TEST_UPDATE_GOLDEN=1 writes its table from the table of the settings."""
    head = ("| key | option of submit | value | default | meaning |", "| --- | --- | --- | --- | --- |")
    table = "\n".join((*head, *map(documented, rows()))) + "\n"
    page = PAGE.read_text()
    if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"):
        PAGE.write_text(page[: page.find(head[0])].rstrip() + "\n\n" + table)
    assert PAGE.read_text().endswith("\n\n" + table)


def test_every_setting_with_a_group_is_an_option_of_submit() -> None:
    from hpclaunch.cli.submit import command

    options = {option.name: option for option in command.params}
    for row in rows():
        assert (row.name in options) == bool(row.group)
    assert options["zero_stage"].opts == ["--zero-stage"]
    assert options["queue"].opts == ["-p", "--partition", "--queue"]


def test_the_words_are_those_of_settings_that_there_are() -> None:
    groups = json.loads((Path(settings_table.__file__).parent / "settings.json").read_text())
    assert sorted(name for group in groups.values() for name in group) == sorted(row.name for row in rows())


def test_defaults_have_the_type_of_their_setting() -> None:
    for row in rows():
        if row.default is not ...:
            assert msgspec.convert(row.default, JobRequest.__annotations__[row.name]) == row.default


def test_the_help_loads_no_msgspec() -> None:
    """Loading it takes longer than the table; a command that was typed wrong or asked for help needs none."""
    program = "import sys; from hpclaunch.cli import submit; print('msgspec' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
