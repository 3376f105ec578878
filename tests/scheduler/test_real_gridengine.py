"""Grid Engine's own qsub (8.1.9, Debian's package, see tests/testbed/gridengine.sh) judges our directives.

``qsub -verify`` prints what it reads in a script and submits nothing, so no daemon runs.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.scheduler.directive_options import active
from tests.scheduler.test_sge import script

ROOT = Path(os.environ["HPCLAUNCH_TEST_GRIDENGINE"])
BOOTSTRAP = """\
admin_user none
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params /nowhere
binary_path /nowhere
qmaster_spool_dir /nowhere
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
jvm_threads 0
"""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files without which a client does not start."""
    folder = tmp_path_factory.mktemp("sge")
    common = folder / "default" / "common"
    common.mkdir(parents=True)
    (common / "act_qmaster").write_text("localhost\n")
    (common / "bootstrap").write_text(BOOTSTRAP)
    (folder / "utilbin").mkdir()
    for name in ("lib", "utilbin"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "lx-amd64").symlink_to(ROOT / "usr" / "lib" / "gridengine")
    (folder / "util").symlink_to(ROOT / "usr" / "share" / "gridengine" / "util")
    return folder


def verified(cell: Path, text: str) -> tuple[dict[str, str], str]:
    """Return what the real qsub reads in a script, and what it complains about."""
    path = cell / "job.sh"
    path.write_text(text)
    libraries = next((ROOT / "usr" / "lib").glob("*/libjemalloc.so.2")).parent
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(cell),
        "SGE_ROOT": str(cell),
        "SGE_CELL": "default",
        "SGE_QMASTER_PORT": "16444",
        "SGE_EXECD_PORT": "16445",
        "LD_LIBRARY_PATH": str(libraries),
    }
    qsub = str(ROOT / "usr" / "lib" / "gridengine" / "qsub")
    answer = subprocess.run([qsub, "-verify", str(path)], env=env, capture_output=True, text=True)
    found = dict(re.findall(r"^([\w -]+?)(?: \(req\))?:[ ]+(\S.*)$", answer.stdout, re.MULTILINE))
    errors = [
        line for line in (answer.stdout + answer.stderr).splitlines() if re.search("error|Unknown", line)
    ]
    return found, "\n".join(errors)


def test_our_headers_are_read_as_meant(cell: Path) -> None:
    slots, errors = verified(
        cell, script(account="Mine", queue="all.q", nodes=2, tasks_per_node=4, time="90m", array="1-9%2")
    )
    assert errors == ""
    assert {
        "job_name": "mnist",
        "project": "Mine",
        "hard_queue_list": "all.q",
        "hard resource_list": "h_rt=01:30:00",
        "merge": "y",
        "parallel environment": "mpi range: 8",
        "job-array tasks": "1-9:1",
        "maximum concurrency": "2",
        "shell_list": "NONE:/bin/bash",
    }.items() <= slots.items()
    nodes, errors = verified(cell, script("rt_F", nodes=3, after=("12", "13"), after_any=True))
    assert errors == ""
    assert nodes["hard resource_list"].startswith("rt_F=3,")
    assert nodes["jid_predecessor_list"] == "12,13"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("#$ -N hi", "hi"),
        ("#$-N hi", "hi"),
        ("#$ -N hi ### its name", "hi"),
        ("# $ -N hi", "job.sh"),
        ("  #$ -N hi", "job.sh"),
    ],
)
def test_it_and_we_take_the_same_lines_for_directives(cell: Path, line: str, name: str) -> None:
    text = f"#!/bin/bash\necho\n{line}\n"  # after a command, too
    assert verified(cell, text)[0]["job_name"] == name
    assert active(text, first_command=2) == ([("N", "hi")] if name == "hi" else [])


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("-g mygroup", True),
        ("-foo", False),
        ("--nodes=2", False),
        ("-tc 3", True),
        ("-ar 3", True),
        ("word", False),
    ],
)
def test_it_refuses_the_options_that_we_call_unknown(cell: Path, line: str, known: bool) -> None:
    from hpclaunch.scheduler.directive_readers import read_directives

    text = f"#!/bin/bash\n#$ {line}\n"
    options = read_directives(text, [], frozenset())
    assert all(option.known for option in options) == known
    refused = bool(verified(cell, text)[1])
    assert refused == (not known or line.startswith("-g"))  # -g is of Univa's and Altair's only
