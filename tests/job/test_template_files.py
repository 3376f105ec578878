"""Compiled templates are kept: a script is the same with and without them, and none is out of date."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import jinja2
import pytest
from jinja2.exceptions import SecurityError, UndefinedError

from hpclaunch.job import job_script, prepare, template_files
from hpclaunch.job.settings_files import read_layers
from hpclaunch.package_data import resource_dir
from hpclaunch.plan.settings import JobSettings

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
    compile_ = jinja2.Environment.compile

    def noting(self: jinja2.Environment, source: str, name: str, *rest: object) -> object:
        names.append(name)
        return compile_(self, source, name, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr(jinja2.Environment, "compile", noting)
    return names


def script() -> str:
    """Return the script that another process would write."""
    template_files.templates_in.cache_clear()
    settings = JobSettings(site="lumi-g", account="project_465000001", command=("mnist",), binding="strict")
    return job_script.dry_run(prepare.prepare(read_layers(settings, None)))[1]


def kept() -> list[Path]:
    return sorted((Path(os.environ["XDG_CACHE_HOME"]) / "hpclaunch" / "templates").iterdir())


def test_a_kept_template_gives_the_same_script(templates: Path, compiled: list[str]) -> None:
    first = script()
    assert {"slurm.sh.j2", "_job.sh.j2", "_lines.sh.j2"} <= set(compiled)
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


def test_another_jinja_compiles_anew(
    templates: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = script()
    compiled.clear()
    monkeypatch.setattr(jinja2, "__version__", "99")
    assert script() == first
    assert "slurm.sh.j2" in compiled


def test_other_code_compiles_anew(
    templates: Path, compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = script()
    compiled.clear()
    changed = tmp_path / "template_files.py"
    changed.write_bytes(Path(template_files.__file__).read_bytes() + b"# other options\n")
    monkeypatch.setattr(template_files, "__file__", str(changed))
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
    [("{{ nothing }}", UndefinedError), ('{{ ("").__class__.__mro__ }}', SecurityError)],
)
def test_kept_templates_stay_strict_and_sandboxed(
    templates: Path, compiled: list[str], text: str, error: type[Exception]
) -> None:
    (templates / "_job.sh.j2").write_text(text)
    with pytest.raises(error):
        script()
    compiled.clear()
    with pytest.raises(error):
        script()
    assert compiled == []


def test_a_process_reads_a_template_once_while_its_file_is_unchanged(
    templates: Path, compiled: list[str]
) -> None:
    first = script()
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    compiled.clear()
    settings = JobSettings(site="lumi-g", account="project_465000001", command=("mnist",), binding="strict")
    layers = read_layers(settings, None)
    assert job_script.dry_run(prepare.prepare(layers))[1] == first
    assert compiled == []
    path = templates / "_job.sh.j2"
    path.write_text(path.read_text().replace("set -eo pipefail", "set -ex pipefail"))
    os.utime(path, ns=(1, 1))
    assert "set -ex pipefail" in job_script.dry_run(prepare.prepare(layers))[1]
