"""Grid Engine: its header, launcher and directives; the real qsub is asked in test_real_gridengine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.job.template_files import script_templates
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.plan.script_text import render
from hpclaunch.scheduler.sge import SCHEDULER as SGE
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.schema import Queue, SiteProfile
from hpclaunch.site.site_scheduler import refuse_submission
from tests.in_one_test import in_one_test
from tests.own_process import hpclaunch
from tests.scheduler.directive_options import active, requested


def profile(resource: str | None = None) -> SiteProfile:
    generic = load_site("generic-slurm")
    queues = {resource: Queue(kind="resource")} if resource else {}
    scheduler = replace(generic.scheduler, kind="sge", launcher="mpiexec")
    return replace(generic, scheduler=scheduler, queues=queues)


def script(resource: str | None = None, place: JobPlace | None = None, **asked: Any) -> str:
    request = JobRequest(**{"site": "x", "command": Command(argv=("./a",)), "name": "mnist", **asked})
    place = place or JobPlace()
    return render(make_plan(request, profile(resource), None, place), place, script_templates())


def own(text: str) -> list[str]:
    return [line[3:] for line in text.splitlines() if line.startswith("#$ ")]


def test_the_header() -> None:
    text = script(account="MyProject", queue="all.q", nodes=2, tasks_per_node=4, time="90m", array="1-9%2")
    assert own(text) == [
        "-N mnist",
        "-S /bin/bash",
        "-cwd",
        "-P MyProject",
        "-q all.q",
        "-pe mpi 8",
        "-l h_rt=01:30:00",
        "-j y",
        "-t 1-9",
        "-tc 2",
    ]


def test_nodes_are_requested_by_the_resource_that_counts_them() -> None:
    text = script("rt_F", nodes=2, after=("12", "13"), after_any=True)
    assert {"-l rt_F=2", "-hold_jid 12,13"} <= set(own(text))
    assert not [line for line in own(text) if line.split()[0] in ("-pe", "-q")]
    assert ("l:rt_F", "2") in active(text)


def test_the_parallel_environment_of_the_site_replaces_the_usual_one() -> None:
    assert [line for line in own(script(directives=("-pe orte 8",))) if "-pe" in line] == ["-pe orte 8"]


def test_a_node_stands_once_per_rank_in_the_file_for_mpirun(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("g1 80 gpu@g1 UNDEFINED\ng2 80 gpu@g2 UNDEFINED\n")
    lines = [line.text for line in SGE.launchers[0].environment(None, ())]
    program = "\n".join(["set -eo pipefail", SGE.first_node, 'echo "$MASTER_ADDR"', SGE.node_names, *lines])
    env = {
        "PATH": "/usr/bin:/bin",
        "PE_HOSTFILE": str(tmp_path / "hosts"),
        "HPCLAUNCH_TASKS": "6",
        "HPCLAUNCH_JOB_FOLDER": str(tmp_path),
    }
    answer = subprocess.run(["bash", "-c", program], env=env, capture_output=True, text=True)
    assert answer.stdout.splitlines() == ["g1", "g1", "g2"], answer.stderr
    assert (tmp_path / "machines").read_text().split() == ["g1"] * 3 + ["g2"] * 3
    del env["PE_HOSTFILE"]
    alone = subprocess.run(["bash", "-c", SGE.node_names], env=env, capture_output=True, text=True)
    assert alone.stdout.split() == [os.uname().nodename]


def test_what_the_directives_request() -> None:
    text = "#!/bin/bash\n#$-pe mpi 4-8\n#$ -l h_rt=1:00:00,mem_free=4.0G -o out.log ### its output\n"
    numbers = requested(text)
    assert numbers.tasks is not None
    assert numbers.walltime_s is not None
    assert (numbers.tasks.value, numbers.walltime_s.value) == (8, 3600)
    assert active(text)[-2:] == [("l:mem_free", "4.0G"), ("o", "out.log")]


def test_slots_on_one_host_may_be_threads() -> None:
    numbers = requested("#!/bin/bash\n#$ -pe smp 8\n#$ -l h_rt=1:00:00\n")
    assert numbers.tasks is None
    assert numbers.cpus_per_node is not None
    assert (numbers.node_count, numbers.cpus_per_node.value) == (1, 8)


@in_one_test(
    "asked, words",
    [
        ({"array": "0-3"}, "the indices of Grid Engine begin at 1"),
        ({"max_restarts": 1}, "not supported on Grid Engine"),
        ({"exclude": ("n1",)}, "Grid Engine leaves nodes out by requests"),
        ({"after": ("1",)}, "-hold_jid waits for the end of jobs, however they end"),
        ({"name": "1a"}, "cannot stand in a batch script"),
        ({"directives": ("-l h_rt=1:0:0",)}, "use --time"),
        ({"directives": ("-sync y",)}, "use hpclaunch submit --wait"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        script(**asked)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_nothing_is_submitted_and_a_dry_run_says_so() -> None:
    sentence = "has Grid Engine, which is read and written only"
    with pytest.raises(SiteRuleError, match=sentence):
        refuse_submission(profile())
    request = JobRequest(site="x", command=Command(argv=("./a",)))
    assert sentence in make_plan(request, profile(), None, JobPlace()).warnings[0]


@pytest.mark.slow
def test_sites_new_knows_its_qsub_from_that_of_pbs(tmp_path: Path) -> None:
    for program in ("qsub", "qconf"):
        (tmp_path / program).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / program).chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(tmp_path)}
    done = hpclaunch("sites", "new", "mine", env=env)
    assert done.returncode == 3
    assert "this machine has Grid Engine (qconf is here)" in done.stderr
