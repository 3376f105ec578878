"""Cobalt: its header, launchers and directives, as documented; not tried on a real one."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from msgspec.structs import replace

from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.job.template_files import script_templates
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.plan.script_text import render
from hpclaunch.scheduler.cobalt import SCHEDULER as COBALT
from hpclaunch.scheduler.launcher import Launch
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import refuse_submission
from tests.in_one_test import in_one_test
from tests.scheduler.directive_options import active, requested


def profile(launcher: str) -> SiteProfile:
    generic = load_site("generic-slurm")
    return replace(generic, scheduler=replace(generic.scheduler, kind="cobalt", launcher=launcher))


def script(launcher: str = "mpiexec", place: JobPlace | None = None, **asked: Any) -> str:
    request = JobRequest(**{"site": "x", "command": Command(argv=("./a",)), "name": "mnist", **asked})
    place = place or JobPlace()
    return render(make_plan(request, profile(launcher), None, place), place, script_templates())


def test_the_directives_are_the_first_lines_and_what_they_are_for_follows() -> None:
    text = script(account="MyProject", queue="full-node", nodes=2, time="90m", after=("12", "13"))
    head = text.split("\n\n")[0].splitlines()
    own = [line for line in head if line.startswith("#COBALT ")]
    assert head[: len(own) + 1] == ["#!/bin/bash", *own]
    assert own == [
        "#COBALT --jobname mnist",
        "#COBALT -A MyProject",
        "#COBALT -q full-node",
        "#COBALT -n 2",
        "#COBALT -t 01:30:00",
        "#COBALT --dependencies 12:13",
    ]
    assert "#   -A MyProject: the project that pays" in head


def test_our_own_header_is_read_back() -> None:
    text = script(nodes=3, time="90m")
    assert ("nodecount", "3") in active(text)
    numbers = requested(text)
    assert numbers.nodes is not None
    assert numbers.walltime_s is not None
    assert (numbers.nodes.value, numbers.walltime_s.value) == (3, 5400)


def test_aprun_places_ranks_and_leaves_the_binding_to_them() -> None:
    launcher = COBALT.launcher("aprun")
    assert launcher is not None
    words = launcher.words(
        Launch(nodes=2, tasks_per_node=4, threads_per_core=2, bound_cpus=32, ranks_bind=True)
    )
    assert " ".join(words) == "aprun -n 8 -N 4 -d 32 -j 2 -cc none"
    words = launcher.words(Launch(nodes=1, tasks_per_node=4, cpus_per_task=16, options=("-b",)))
    assert " ".join(words) == "aprun -n 4 -N 4 -d 16 -j 1 -cc depth -b"


def test_a_rank_of_aprun_computes_its_number_on_the_node() -> None:
    text = script("aprun", nodes=2, tasks_per_node=4)
    export = re.search(r"^export HPCLAUNCH_RANKS_PER_NODE=.*$", text, re.MULTILINE)
    assert export is not None
    launcher = COBALT.launcher("aprun")
    assert launcher is not None
    answer = subprocess.run(
        ["bash", "-c", f"{export[0]}\necho {launcher.rank} {launcher.local_rank}"],
        env={"PATH": "/usr/bin:/bin", "HPCLAUNCH_TASKS": "8", "COBALT_JOBSIZE": "2", "ALPS_APP_PE": "6"},
        capture_output=True,
        text=True,
    )
    assert answer.stdout == "6 2\n"


def test_mpirun_gets_the_ranks_per_node_and_the_file_of_nodes() -> None:
    text = script(nodes=2, tasks_per_node=8)
    assert '\nmpirun -np 16 -npernode 8 --hostfile "$COBALT_NODEFILE" -x HPCLAUNCH_JOB_FOLDER -x ' in text


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        ({"COBALT_PARTNAME": "3834-3836,12"}, ["nid03834", "nid03835", "nid03836", "nid00012"]),
        ({"COBALT_PARTNAME": "7"}, ["nid00007"]),
        ({"COBALT_PARTNAME": "7", "COBALT_NODEFILE": "FILE"}, ["thetagpu01", "thetagpu02"]),
    ],
)
def test_the_nodes_of_a_job(nodes: dict[str, str], names: list[str], tmp_path: Any) -> None:
    (tmp_path / "nodes").write_text("thetagpu01\nthetagpu02\n")
    env = {name: value.replace("FILE", str(tmp_path / "nodes")) for name, value in nodes.items()}
    program = f'set -eo pipefail\n{COBALT.first_node}\necho "$MASTER_ADDR"\n{COBALT.node_names}'
    answer = subprocess.run(
        ["bash", "-c", program], env={"PATH": "/usr/bin:/bin", **env}, capture_output=True, text=True
    )
    assert answer.stdout.splitlines() == [names[0], *names], answer.stderr


def test_directives_count_up_to_the_first_line_that_is_blank() -> None:
    text = (
        "#!/bin/bash\n#COBALT -n 2 -t 30 -A Mine\n##COBALT -M me@x\n#COBALT --attrs=mcdram=cache:numa=quad\n"
    )
    expected = [("nodecount", "2"), ("time", "30"), ("project", "Mine"), ("attrs", "mcdram=cache:numa=quad")]
    assert active(f"{text}\n#COBALT -q full-node\naprun ./a\n") == expected
    assert active(f"{text}#COBALT -q full-node\naprun ./a\n") == [*expected, ("queue", "full-node")]


@in_one_test("text, seconds", [("30", 1800), ("0:20:00", 1200), ("00:60:00", 3600), ("2h", None)])
def test_times(text: str, seconds: int | None) -> None:
    found = requested(f"#COBALT -t {text}\n").walltime_s
    assert (found.value if found else None) == seconds


@in_one_test(
    "asked, words",
    [
        ({"array": "0-3"}, "Cobalt"),
        ({"max_restarts": 1}, "not supported on Cobalt"),
        ({"exclude": ("n1",)}, "Cobalt has no option that leaves nodes out"),
        (
            {"after": ("1",), "after_any": True},
            "--after-any: Cobalt's --dependencies waits for jobs that end with",
        ),
        ({"name": "a b"}, "cannot stand in a batch script"),
        ({"directives": ("-t 30",)}, "use --time"),
        ({"directives": ("--nodec 4",)}, "use --nodes"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        script(**asked)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_a_path_that_a_directive_cannot_carry_is_refused() -> None:
    with pytest.raises(BadInputError, match="cannot stand in a #COBALT line"):
        script(place=JobPlace(folder="/home/a b/1", job_id="1"))


def test_nothing_is_submitted() -> None:
    with pytest.raises(SiteRuleError, match="has Cobalt, which is on no machine any more"):
        refuse_submission(profile("aprun"))
