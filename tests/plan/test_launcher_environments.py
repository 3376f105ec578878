"""Each rank knows who it is under every environment that a launcher is known to give it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from hpclaunch.observe.attached_nodes import AttachedNode, Process
from hpclaunch.observe.attached_ranks import judge_attached
from hpclaunch.plan.request import Command
from hpclaunch.scheduler.registry import LAUNCHERS
from hpclaunch.train.launch_environment import launcher_local_rank, launcher_rank
from tests.launcher_environments import environments, name_of, variables
from tests.plan.test_golden import ACCOUNTS, script_of
from tests.profiles import shipped
from tests.scripts import rank_lines

pytestmark = pytest.mark.slow

NODES, EACH = 2, 2
SITES = {
    "pals": ("aurora", "polaris"),
    "srun": ("lumi-g", "jupiter"),
    "ibrun": ("vista",),
    "flux": ("generic-flux",),
    "jsrun": ("summit",),
    "aprun": ("theta",),
    "mpiexec": ("generic-pbs", "thetagpu"),
}
FRAMEWORKS = ("torch", "deepspeed", "jax", "horovod", None)
CASES = [(site, each) for each in environments() for site in SITES[each["launcher"]]]
# theta's script exports the ranks per node; the tests' machine has fewer CPUs than the nodes of the sites.
BEFORE = "export HPCLAUNCH_RANKS_PER_NODE=2\ntaskset() { :; }\n"


def str_or_name(value: str | dict[str, Any]) -> str:
    """A name for a part of a case."""
    return value if isinstance(value, str) else name_of(value)


def each_at(site: str) -> int:
    """Ranks per node: where a node has one GPU it is one."""
    return 1 if site == "vista" else EACH


def lines(site: str, framework: str | None, **more: Any) -> str:
    """The lines of each rank in the script of a job."""
    asked = {
        "site": site,
        "account": ACCOUNTS.get(site),
        "nodes": NODES,
        "tasks_per_node": each_at(site),
        **more,
    }
    command = Command(argv=("./a.out",))
    return rank_lines(script_of({**asked, "framework": framework, "command": command}, plain=True))


def known_to_jax(text: str, rank: int, each: int) -> dict[str, int]:
    """The variables by which JAX finds ranks, but for those of srun, which it knows."""
    if "SLURM_PROCID" in text:
        return {}
    numbers = {"RANK": rank, "LOCAL_RANK": rank % each, "SIZE": NODES * each}
    return {f"OMPI_COMM_WORLD_{name}": number for name, number in numbers.items()}


def started(text: str, given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a rank's lines; then its program prints the variables that it finds, after RANK and LOCAL_RANK."""
    words = f'{BEFORE}{text}\nprintf "%s\\0" "$RANK" "$LOCAL_RANK"; exec env -0'
    environment = {"PATH": os.environ["PATH"], **given}
    return subprocess.run(["bash", "-c", words, "rank"], env=environment, capture_output=True, text=True)


def test_each_launcher_has_an_environment() -> None:
    # direct: the shell of the job itself, see tests/job/test_start_ranks.py
    assert set(LAUNCHERS) - {"direct"} == set(SITES) == {each["launcher"] for each in environments()}
    for each in environments():
        assert set(each) == {"launcher", "site", "kind", "source", "variables"}
        assert each["kind"] in ("record", "manual")
        assert each["source"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("site", "environment"), CASES, ids=lambda x: x if isinstance(x, str) else name_of(x)
)
def test_every_rank_knows_who_it_is(site: str, environment: dict[str, Any], framework: str | None) -> None:
    text, each = lines(site, framework), each_at(site)
    for rank in range(NODES * each):
        given = variables(environment, rank, nodes=NODES, each=each)
        if environment["launcher"] in ("mpiexec", "ibrun"):
            given |= {
                "SLURM_PROCID": "0",
                "SLURM_LOCALID": "0",
            }  # of the shell that called it, in a Slurm job
        done = started(text, given)
        assert done.returncode == 0, done.stderr
        own, own_local, *rest = done.stdout.split("\0")[:-1]
        found = dict(pair.split("=", 1) for pair in rest)
        local = rank % each
        assert own == str(rank)
        assert own_local == str(local)
        names = {"RANK": rank, "LOCAL_RANK": local, "WORLD_SIZE": NODES * each}
        wanted = {
            "torch": {**names, "LOCAL_WORLD_SIZE": each, "GROUP_RANK": rank // each},
            "deepspeed": {**names, "LOCAL_WORLD_SIZE": each, "LOCAL_SIZE": each},
            "jax": {
                "JAX_NUM_PROCESSES": NODES * each,
                "JAX_PROCESS_ID": rank,
                **known_to_jax(text, rank, each),
            },
            None: names,
        }.get(framework, {})
        assert {name: found.get(name) for name in wanted} == {n: str(v) for n, v in wanted.items()}
        told = {name for name in (*names, "GROUP_RANK", "JAX_PROCESS_ID") if name in found}
        assert told <= set(wanted)
        if framework == "jax" and (variable := shipped(site).binding.gpu_visible_var):
            visible = found[variable].split(",")
            gpus = [visible[int(number)] for number in found["JAX_LOCAL_DEVICE_IDS"].split(",")]
            assert len(set(gpus)) == len(visible) // each
            assert found["JAX_LOCAL_DEVICE_IDS"].startswith(str(local))


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("launcher", SITES)
def test_a_rank_without_a_number_ends_with_a_sentence(launcher: str, framework: str | None) -> None:
    text = lines(SITES[launcher][0], framework)
    done = started(text, {"HPCLAUNCH_TASKS": "4"})
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.rstrip().endswith(f": {launcher} gave no rank")


@pytest.mark.parametrize("launcher", sorted(set(SITES) - {"aprun"}))
def test_a_rank_without_its_number_on_the_node_ends_too(launcher: str) -> None:
    environment = environments(launcher)[0]
    given = variables(environment, 3, nodes=NODES, each=EACH)
    done = started(lines(SITES[launcher][0], "torch"), {n: v for n, v in given.items() if "LOCAL" not in n})
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.rstrip().endswith(f": {launcher} gave no rank")


@pytest.mark.parametrize("environment", environments(), ids=name_of)
def test_the_runner_and_the_recorder_know_the_rank(environment: dict[str, Any]) -> None:
    given = variables(environment, 3, nodes=NODES, each=EACH)
    assert launcher_rank(given) == 3
    assert launcher_local_rank(given) == (None if environment["launcher"] == "aprun" else 1)
    ask = "from hpclaunch.remote.rank_profile import rank; print(rank())"
    done = subprocess.run(
        [sys.executable, "-c", ask], env={"PATH": os.environ["PATH"], **given}, capture_output=True, text=True
    )
    assert done.stdout == "3\n", done.stderr


@pytest.mark.parametrize(
    "environment",
    [each for each in environments() if each["launcher"] != "aprun" and each["site"] != "jupiter"],
    ids=name_of,
)
def test_ranks_that_run_are_told_apart(environment: dict[str, Any]) -> None:
    def process(rank: int) -> Process:
        given = variables(environment, rank, nodes=NODES, each=EACH)
        return Process(
            pid=100 + rank,
            parent=1,
            ticks=1,
            program=("python",),
            cpus=str(rank % EACH),
            mems="0",
            threads={str(rank % EACH): 1},
            devices=(),
            variables=given,
        )

    nodes = [
        AttachedNode(host=f"n{n}", processes=tuple(process(n * EACH + k) for k in range(EACH)), gpus={})
        for n in range(NODES)
    ]
    verdict = judge_attached("7", nodes, shipped("generic-slurm"), None, {})
    assert [(each.rank, each.local_rank) for each in verdict.ranks] == [(0, 0), (1, 1), (2, 0), (3, 1)]
