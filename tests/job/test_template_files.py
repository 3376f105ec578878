"""Programs of templates are kept: a script is the same with and without them, and none is out of date."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType

import pytest
from jinja2.exceptions import SecurityError, TemplateSyntaxError

from hpclaunch.job import prepare, template_files, template_program
from hpclaunch.job.settings_files import read_layers
from hpclaunch.package_data import resource_dir
from hpclaunch.plan.settings import JobSettings

SITES = ("generic-slurm", "generic-pbs", "generic-lsf", "generic-flux", "local", "saga", "theta")

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the templates, which is used from here on."""
    shutil.copytree(resource_dir("templates"), tmp_path / "templates")
    monkeypatch.setattr(template_files, "resource_dir", lambda name: tmp_path / name)
    return tmp_path / "templates"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The templates that are compiled from here on."""
    names: list[str] = []
    translate = template_program.translated

    def noting(name: str, texts: Mapping[str, str], **syntax: bool) -> CodeType:
        names.append(name)
        return translate(name, texts, **syntax)

    monkeypatch.setattr(template_program, "translated", noting)
    return names


def script() -> str:
    """Return the script that another process would write."""
    template_files._program.cache_clear()
    settings = JobSettings(site="lumi-g", account="project_465000001", command=("mnist",), binding="strict")
    return prepare.dry_run(prepare.prepare(read_layers(settings, None)))[1]


def kept() -> list[Path]:
    return sorted((Path(os.environ["XDG_CACHE_HOME"]) / "hpclaunch" / "templates").iterdir())


def test_a_kept_template_gives_the_same_script(templates: Path, compiled: list[str]) -> None:
    first = script()
    assert set(compiled) == {"slurm.sh.j2", "_about.txt.j2"}
    compiled.clear()
    assert script() == first
    assert compiled == []
    assert "--cpu-bind=mask_cpu:" in first


def test_a_changed_template_is_compiled_anew(templates: Path, compiled: list[str]) -> None:
    first = script()
    path = templates / "_job.sh.j2"
    status = path.stat()
    path.write_text(path.read_text().replace("set -eo pipefail", "set -ex pipefail"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert script() == first.replace("set -eo pipefail", "set -ex pipefail") != first


def test_another_python_compiles_anew(
    templates: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = script()
    compiled.clear()
    monkeypatch.setattr(sys, "version", "99")
    assert script() == first
    assert "slurm.sh.j2" in compiled


@pytest.mark.parametrize("part", ["template_program.py", "template_forms.json"])
def test_other_code_compiles_anew(
    templates: Path, compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    first = script()
    compiled.clear()
    for name in ("template_program.py", "template_forms.json"):
        shutil.copy(Path(template_program.__file__).with_name(name), tmp_path)
    with (tmp_path / part).open("a") as file:
        file.write("\n")
    monkeypatch.setattr(template_files, "__file__", str(tmp_path / "template_files.py"))
    assert script() == first
    assert "slurm.sh.j2" in compiled


@pytest.mark.parametrize("place", [0, 40, -1])
def test_what_is_damaged_is_not_run(templates: Path, compiled: list[str], place: int) -> None:
    first = script()
    for path in kept():
        data = bytearray(path.read_bytes())
        data[place] ^= 1
        path.write_bytes(data)
    compiled.clear()
    assert script() == first
    assert "slurm.sh.j2" in compiled


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{{ nothing }}", NameError),
        ('{{ ("").__class__.__mro__ }}', SecurityError),
        ("{% for each in sources if each %}{% endfor %}", TemplateSyntaxError),
        ("{{ tasks | comment(by=1) }}", TemplateSyntaxError),
        ("{% call tasks() %}{% endcall %}", TemplateSyntaxError),
    ],
)
def test_templates_stay_strict_and_use_only_what_has_a_form(
    templates: Path, compiled: list[str], text: str, error: type[Exception]
) -> None:
    (templates / "_job.sh.j2").write_text(text)
    for _ in range(2):
        with pytest.raises(error):
            script()
    assert compiled.count("slurm.sh.j2") == (1 if error is NameError else 2)


def test_a_process_reads_a_template_once_while_its_file_is_unchanged(
    templates: Path, compiled: list[str]
) -> None:
    first = script()
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    compiled.clear()
    settings = JobSettings(site="lumi-g", account="project_465000001", command=("mnist",), binding="strict")
    layers = read_layers(settings, None)
    assert prepare.dry_run(prepare.prepare(layers))[1] == first
    assert compiled == []
    path = templates / "_job.sh.j2"
    path.write_text(path.read_text().replace("set -eo pipefail", "set -ex pipefail"))
    os.utime(path, ns=(1, 1))
    assert "set -ex pipefail" in prepare.dry_run(prepare.prepare(layers))[1]


@pytest.mark.parametrize("plain", [False, True])
def test_jinja_gives_the_same_script_of_each_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    def scripts() -> list[str]:
        asked = (JobSettings(site=site, account="nn1234k", command=("true",)) for site in SITES)
        layers = (read_layers(each, None) for each in asked)
        return [prepare.dry_run(prepare.prepare(each), plain=plain)[1] for each in layers]

    programs = scripts()
    overlay = tmp_path / "hpclaunch" / "templates" / "job.sh.j2"
    overlay.parent.mkdir(parents=True)
    overlay.write_text('{% extends "job.sh.j2" %}\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert scripts() == programs
