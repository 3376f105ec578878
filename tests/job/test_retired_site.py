"""Machines that are switched off: planned dry, and refused at submission with the reason."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpclaunch.api import Job, jobs
from hpclaunch.errors import SiteRuleError
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.site_scheduler import refuse_submission, retired_sentence
from tests.own_process import hpclaunch

PROFILE = """\
schema: 1
name: old
description: a machine that is gone
extends: generic-slurm
status: historic
retired: {%s}
"""


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def submit(*words: str) -> subprocess.CompletedProcess[str]:
    return hpclaunch("submit", "--site", "summit", "--account", "ABC123", *words)


@pytest.mark.slow
def test_a_dry_run_shows_the_script_and_says_that_the_machine_is_off() -> None:
    done = submit("--dry-run", "mnist")
    assert done.returncode == 0
    assert "#BSUB -nnodes 1" in done.stdout
    assert "summit is switched off since 2024-11-15" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--host", "nowhere.invalid")])
def test_a_submission_is_refused_before_any_host_is_called(more: tuple[str, ...]) -> None:
    done = submit(*more, "mnist")
    assert (done.returncode, done.stdout) == (3, "")
    assert "nothing can be submitted: summit is switched off since 2024-11-15" in done.stderr
    assert "https://github.com/olcf/olcf-user-docs, read" in done.stderr


def test_from_python_too_and_no_record_is_left() -> None:
    with pytest.raises(SiteRuleError, match="switched off"):
        Job(site="summit", account="ABC123", command=("./train",)).submit()
    assert jobs() == []


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ("", "old is switched off (the day is unknown) (site profile old)"),
        (
            "since: 2020-02-03, successor: new",
            "old is switched off since 2020-02-03; its successor is new (site profile old)",
        ),
    ],
)
def test_what_is_unknown_is_said_to_be_so(tmp_path: Path, facts: str, sentence: str) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(PROFILE % facts)
    profile = load_site(str(file))
    assert retired_sentence(profile) == sentence
    with pytest.raises(SiteRuleError):
        refuse_submission(profile)
    request = JobRequest(site="old", command=Command(argv=("./a",)))
    assert sentence in make_plan(request, profile, site_topology(profile), JobPlace()).warnings[0]


@pytest.mark.parametrize("site", ["summit", "theta", "thetagpu", "abci"])
def test_every_retired_machine_is_planned_dry_and_refused(site: str) -> None:
    profile = load_site(site)
    assert profile.status == "historic"
    request = JobRequest(site=site, account="ABC123", command=Command(argv=("./a",)), nodes=2)
    plan = make_plan(request, profile, site_topology(profile), JobPlace())
    assert plan.warnings[0].startswith(f"{site} is switched off")
    assert plan.problems == ()
    with pytest.raises(SiteRuleError, match="nothing can be submitted"):
        refuse_submission(profile)


def test_a_machine_in_use_is_not_refused() -> None:
    refuse_submission(load_site("frontier"))
