"""Without --site ``check`` judges for the site of this machine, and ``submit`` for that of its host."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpclaunch.cli.check import _site_here
from hpclaunch.errors import BadInputError
from hpclaunch.job.prepare import SubmitMode, prepare
from hpclaunch.job.settings_files import read_layers
from hpclaunch.plan.settings import JobSettings


def test_check_takes_the_site_that_submit_detects(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("HPCLAUNCH_SYSROOT", str(tmp_path))
    here = {"folder": None, "alone": False}
    assert _site_here(here) is None
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "lumi")
    assert _site_here(here) == "lumi-g"
    assert "site lumi-g, detected: SLURM_CLUSTER_NAME is lumi" in capsys.readouterr().err
    assert _site_here({**here, "folder": tmp_path}) is None, "captured outputs are of another machine"
    assert _site_here({**here, "alone": True}) is None, "the check that started it has said which site it is"


def test_a_login_host_of_one_site_names_the_site() -> None:
    layers = read_layers(JobSettings(command=("true",), account="a", time="10m"), None)

    def site(host: str) -> str:
        return prepare(layers, SubmitMode(host=host)).request.site

    assert site("me@aurora.alcf.anl.gov") == site("aurora.alcf.anl.gov:22") == "aurora"
    for host in ("me@clariden.alps.cscs.ch", "aurora", "login", "site"):  # of two sites; aliases
        with pytest.raises(BadInputError, match="which site is it"):
            site(host)
