"""Each list "how to add ..." of docs/architecture.md, followed with a made-up thing that is then used.

The package is copied, exactly the files that the list names are written or changed in the copy, and the
program runs from there. A file that the list does not name cannot be touched; one that it names must be.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.train.mpirun import RUNNER, environment, mpiexec, write_digits

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FOLDERS = ("hpclaunch", "templates", "site_profiles")


class Checkout:
    """A copy of the program to which one list of the page is applied."""

    def __init__(self, folder: Path, heading: str, name: str) -> None:
        """``name`` stands for the page's NAME."""
        self.root = folder / "checkout"
        for part in FOLDERS:
            shutil.copytree(ROOT / part, self.root / part)
        section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
        self._listed = re.findall(r"^\d+\. `(.+?)`:", section, re.MULTILINE)
        self._name = name
        self._touched: dict[str, None] = {}
        self.bin, self.cwd = folder / "bin", folder / "elsewhere"
        self.bin.mkdir()
        self.cwd.mkdir()

    def write(self, place: str, text: str) -> None:
        """Write a new file of the list, under its name there."""
        path = self._path(place)
        assert not path.exists()
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def insert(self, place: str, after: str, text: str) -> None:
        """Change a file of the list: add text where the only match of this regular expression ends."""
        path = self._path(place)
        old = path.read_text()
        (match,) = re.finditer(after, old, re.MULTILINE)
        path.write_text(old[: match.end()] + text + old[match.end() :])

    def program(self, name: str, bash: str) -> None:
        """Put a made-up program on PATH."""
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{bash}")
        path.chmod(0o755)

    def run(self, *words: str | Path, code: int = 0) -> str:
        """Run a command once the whole list is followed; it must end with that code. Returns its stdout."""
        assert list(self._touched) == self._listed
        path = os.pathsep.join([str(self.bin), str(Path(sys.executable).parent), os.environ["PATH"]])
        env = environment(PYTHONPATH=str(self.root), PATH=path)
        done = subprocess.run([*map(str, words)], env=env, cwd=self.cwd, capture_output=True, text=True)
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def hpclaunch(self, *words: str | Path, code: int = 0) -> str:
        return self.run(sys.executable, "-m", "hpclaunch", *words, code=code)

    def train(self, *options: str, ranks: int = 1) -> dict[str, Any]:
        """Train an epoch on a few made-up digits; the result."""
        data = write_digits(self.cwd / "digits", 1000, 100)
        words = (mpiexec(), "-n", str(ranks), *RUNNER, "--data", data, "--epochs", "1", "--json")
        result: dict[str, Any] = json.loads(self.run(*words, *options))
        return result

    def _path(self, place: str) -> Path:
        assert place in self._listed, f"the page does not name {place}"
        self._touched[place] = None
        return self.root / place.replace("NAME", self._name)


def row_of(table: str) -> str:
    """A regular expression that ends where the first row of a table of the module stands."""
    return rf"^{table}\b[^=\n]*= [(\[{{]\n?"


def test_every_list_of_the_page_is_followed_here() -> None:
    headings = set(re.findall(r"^## (How to add an? .+)$", PAGE, re.MULTILINE))
    assert headings == set(re.findall(r'"(How to add an? .+?)"', Path(__file__).read_text()))


def test_a_site(tmp_path: Path) -> None:
    made = Checkout(tmp_path, "How to add a site", "tidepool")
    made.write(
        "site_profiles/NAME.yaml",
        """\
schema: 1
name: tidepool
extends: generic-slurm
description: A made-up cluster
account: {required: true, pattern: "tide[0-9]+", example: tide7}
queues:
  ebb: {max_nodes: 4, max_walltime: "01:00:00"}
""",
    )
    made.hpclaunch("sites", "validate", made.root / "site_profiles" / "tidepool.yaml")
    assert "tidepool" in made.hpclaunch("sites", "list")
    submit = ("submit", "--site", "tidepool", "--nodes", "2", "--time", "30m")
    script = made.hpclaunch(*submit, "--account", "tide1", "--dry-run", "--", "./train")
    assert "#SBATCH --partition=ebb" in script
    made.hpclaunch(*submit, "--dry-run", "--", "./train", code=3)  # no account


SCHEDULER = '''\
"""A made-up scheduler."""

from collections.abc import Sequence

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.job_header import HeaderRow
from hpclaunch.scheduler.launcher import Launch, Launcher
from hpclaunch.scheduler.scheduler_interface import JobStatus, Scheduler


class Swell(Launcher, frozen=True, kw_only=True):
    name: str = "swell"
    rank: str = "$SWELL_RANK"
    local_rank: str = "$SWELL_RANK"

    def words(self, launch: Launch) -> tuple[str, ...]:
        return ("swell", str(launch.tasks))

    def one_per_node(self, nodes: int) -> tuple[str, ...]:
        return ("swell", str(nodes))


class Tidal(Scheduler, frozen=True, kw_only=True):
    def submit_command(self, script: str) -> tuple[str, ...]:
        return ("tidalsub", script)

    def parse_submit(self, answer: CommandResult) -> str:
        if answer.exit_code:
            raise RefusedError(f"Tidal refused the job: {answer.stderr}")
        return answer.stdout.strip()

    def status_commands(self, source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        return (("tidalstat", *ids),)

    def parse_status(self, source: str, ids: Sequence[str], answer: CommandResult) -> dict[str, JobStatus]:
        return {job: JobStatus(state="running") for job in answer.stdout.split()}

    def cancel_command(self, scheduler_id: str) -> tuple[str, ...]:
        return ("tidaldel", scheduler_id)

    def parse_cancel(self, answer: CommandResult) -> None:
        pass


SCHEDULER = Tidal(
    kind="tidal",
    title="Tidal",
    submit_program="tidalsub",
    template="tidal.sh.j2",
    header_rows=(HeaderRow("nodes {nodes}", "how many"), HeaderRow("basin {queue}", "{queue_reason}")),
    launchers=(Swell(),),
    job_number="$TIDAL_JOB",
    submit_folder="$PWD",
    port_number="TIDAL_JOB",
    first_node="MASTER_ADDR=localhost",
    node_names="echo localhost",
    log_in_script=True,
    queue_kinds=("basin",),
    poll_s=(0.1, 0.2),
    id_pattern="tide-[0-9]+",
    status_sources=("tidalstat",),
)
'''

TEMPLATE = """\
{% extends "_job.sh.j2" %}
{% block directives %}
{{ put(header_alone, "#TIDE ") -}}
{% endblock %}
"""


def test_a_scheduler(tmp_path: Path) -> None:
    """The made-up scheduler's program runs the script at once, its launcher one rank after the other."""
    made = Checkout(tmp_path, "How to add a scheduler", "tidal")
    made.write("hpclaunch/scheduler/NAME/__init__.py", SCHEDULER)
    for table, name in (("KINDS", "tidal"), ("LAUNCHERS", "swell"), ("QUEUE_KINDS", "basin")):
        made.insert("hpclaunch/scheduler/registry.py", row_of(table), f'"{name}", ')
    made.write("templates/NAME.sh.j2", TEMPLATE)
    made.write(
        "site_profiles/generic-NAME.yaml",
        """\
schema: 1
name: generic-tidal
description: Any machine with Tidal
status: generic
scheduler: {kind: tidal, launcher: swell}
binding: {cpu: none, needs_whole_node: false}
queues:
  lagoon: {kind: basin, max_nodes: 4}
""",
    )
    made.program("tidalsub", 'TIDAL_JOB=1 bash "$1" > /dev/null 2>&1 < /dev/null\necho tide-1\n')
    made.program("tidalstat", "exit 0\n")
    made.program("swell", 'n=$1; shift\nfor ((r = 0; r < n; r++)); do SWELL_RANK=$r "$@" || exit; done\n')
    submit = ("submit", "--site", "generic-tidal", "--nodes", "1", "--tasks", "2")
    program = ("--", "bash", "-c", "echo rank $RANK of $HPCLAUNCH_TASKS")
    script = made.hpclaunch(*submit, "--dry-run", *program)
    assert script.startswith("#!/bin/bash\n# how many\n#TIDE nodes 1\n")
    assert "#TIDE basin lagoon\n" in script
    assert made.hpclaunch(*submit, "--wait", *program).splitlines() == ["rank 0 of 2", "rank 1 of 2"]
    assert json.loads(made.hpclaunch("status", "--json"))["scheduler_id"] == "tide-1"


RULE = '''\
"""A made-up rule."""

from collections.abc import Iterator

from hpclaunch.lint.lint_rule import Context, Violation, rule


@rule("tide-not-awaited")
def tide_not_awaited(context: Context) -> Iterator[Violation]:
    for command in context.script.commands:
        if command.name == "low_tide":
            yield Violation(command.line, "starts at low tide")
'''


TEXTS = """\
tide-not-awaited:
  severity: warning
  what: The script starts at low tide.
  why: There is no water.
  remedy: Wait for the tide.
  bad: low_tide
  good: high_tide
"""


def test_a_lint_rule(tmp_path: Path) -> None:
    made = Checkout(tmp_path, "How to add a lint rule", "tide")
    made.write("hpclaunch/lint/rules/NAME_rules.yaml", TEXTS)
    made.write("hpclaunch/lint/rules/NAME_rules.py", RULE)
    imported = "from hpclaunch.lint.rules import tide_rules\n"
    made.insert("hpclaunch/lint/rules/__init__.py", r"^# ruff: noqa: F401, I001\n", imported)
    script = made.cwd / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time=10\nlow_tide\n")
    found = json.loads(made.hpclaunch("lint", "--json", script, code=1))
    assert ("tide-not-awaited", 4) in [(one["rule"], one["line"]) for one in found["findings"]]
    assert "tide-not-awaited" in made.hpclaunch("lint", "--rules")


SOURCE = '''\
"""A made-up tool that prints one line ``node ID: FIRST-LAST`` per NUMA node."""

from hpclaunch.cpuset import parse_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import Core, NumaNode
from hpclaunch.topology.node_topology import Partial


def read(text: str, origin: str) -> Partial:
    nodes = {}
    for number, line in enumerate(text.splitlines(), 1):
        word, _, cpus = line.partition(": ")
        if not word.startswith("node "):
            raise BadInputError(f"{origin}:{number}: no node: {line[:40]!r}")
        nodes[int(word[5:])] = parse_cpu_list(cpus)
    return Partial(
        kind="tide_info",
        origin=origin,
        numa_nodes=tuple(NumaNode(id=node, cpus=cpus) for node, cpus in nodes.items()),
        cores=tuple(Core(cpus=(cpu,), numa=node) for node, cpus in nodes.items() for cpu in sorted(cpus)),
    )
'''


def test_a_topology_source(tmp_path: Path) -> None:
    made = Checkout(tmp_path, "How to add a topology source", "tide_info")
    made.write("hpclaunch/topology/NAME.py", SOURCE)
    row = '"precedence": 8, "help": "Output of tide-info.", "file": "tide.txt", "commands": [["tide-info"]]'
    made.insert("hpclaunch/topology/source_kinds.json", r"\A\{", f'\n  "tide_info": {{{row}}},')
    text = made.cwd / "tide.txt"
    text.write_text("node 0: 0-3\nnode 1: 4-7\n")
    assert "Output of tide-info." in made.hpclaunch("topology", "--help")
    masks = made.hpclaunch("topology", "--tide-info", text, "--tasks-per-node", "2", "--format", "mask_cpu")
    assert masks.split() == ["0xf,0xf0"]
    made.program("tide-info", f"cat {text}\n")
    saved = made.cwd / "node"
    made.hpclaunch("topology", "--save", saved)
    assert (saved / "tide.txt").read_text() == text.read_text()


def test_a_framework(tmp_path: Path) -> None:
    made = Checkout(tmp_path, "How to add a framework", "tideflow")
    row = '\n  "tideflow": {"rank_variables": ["RANK", "WORLD_SIZE"], "rendezvous": true},'
    made.insert("hpclaunch/frameworks.json", r"\A\{", row)
    made.insert(
        "hpclaunch/plan/settings_table.py", r"^    framework: (Annotated\[\s*)?Literal\[", '"tideflow", '
    )
    submit = ("submit", "--site", "generic-slurm", "--nodes", "2", "--framework", "tideflow")
    script = made.hpclaunch(*submit, "--dry-run", "--", "./train")
    assert re.search(r"^export RANK=.*\nexport WORLD_SIZE=2  #", script, re.MULTILINE)
    assert "export MASTER_ADDR" in script


ALLREDUCE = '''\
"""A made-up allreduce: every rank sends its array to every other rank."""

from .algorithm import Algorithm
from . import Array


class FloodAllreduce(Algorithm):
    name = "flood"

    def _sum(self, array: Array) -> None:
        gathered = self._comm.allgather(array)
        array[:] = sum(gathered[1:], gathered[0])
'''


@pytest.mark.slow
@pytest.mark.mpi
def test_an_allreduce(tmp_path: Path) -> None:
    made = Checkout(tmp_path, "How to add an allreduce", "flood")
    made.write("hpclaunch/train/allreduce/NAME.py", ALLREDUCE)
    line = '    "flood": when_made(__name__, "flood", "FloodAllreduce"),\n'
    made.insert("hpclaunch/train/allreduce/__init__.py", row_of("ALLREDUCES"), line)
    flood, plain = (made.train("--allreduce", name, ranks=2) for name in ("flood", "mpi"))
    assert (flood["allreduce"], plain["allreduce"]) == ("flood", "mpi")
    assert flood["parameters_sha256"] == plain["parameters_sha256"]
    bench = ("-m", "hpclaunch.train", "bench", "--sizes", "4K", "--rounds", "1", "--algorithms", "flood")
    assert "flood" in made.run(mpiexec(), "-n", "2", sys.executable, *bench)


@pytest.mark.slow
@pytest.mark.mpi
def test_an_engine(tmp_path: Path) -> None:
    made = Checkout(tmp_path, "How to add an engine", "mill")
    made.write(
        "hpclaunch/train/engine/NAME.py",
        """\
from .models import NumpyEngine


class MillEngine(NumpyEngine):
    name = "mill"

    @property
    def device(self) -> str:
        return "a water mill"
""",
    )
    place = "hpclaunch/train/engine/__init__.py"
    made.insert(place, row_of("ENGINES"), '"mill": _mill, ')
    made.insert(
        place,
        r"^    return torch_engine\(options, rank\)\n",
        """

def _mill(options: Options, rank: int) -> Engine:
    from .mill import MillEngine

    return MillEngine(options.model, options.optimizer, options.seed, rank)
""",
    )
    result = made.train("--engine", "mill")
    assert (result["engine"], result["device"]) == ("mill", "a water mill")


@pytest.mark.slow
@pytest.mark.mpi
def test_an_exchange(tmp_path: Path) -> None:
    made = Checkout(tmp_path, "How to add an exchange", "bottle")
    made.write(
        "hpclaunch/train/exchange/NAME.py",
        """\
from .gradient_exchange import GradientExchange


class BottleExchange(GradientExchange):
    messages = 77
""",
    )
    place = "hpclaunch/train/exchange/__init__.py"
    line = '    "bottle": when_made(__name__, "bottle", "BottleExchange"),\n'
    made.insert(place, row_of("COMMS"), line)
    ring, bottle = made.train(ranks=2), made.train("--comm", "bottle", ranks=2)
    assert (ring["comm"], bottle["comm"]) == ("ring", "bottle")
    assert ring["parameters_sha256"] == bottle["parameters_sha256"]
