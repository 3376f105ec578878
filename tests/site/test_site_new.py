"""``hpclaunch sites new``: a profile from the live node describes that node."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.new_profile import cpu_model, profile_text
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import base_profiles
from hpclaunch.site.validate import checked
from hpclaunch.site.yaml_tree import parse_tree
from hpclaunch.topology.node_topology import Core, Gpu, Nic, NodeTopology, NumaNode
from hpclaunch.topology.sources import read_live
from tests.in_process import hpclaunch_here


@st.composite
def machines(draw: st.DrawFn) -> NodeTopology:
    """Nodes of either numbering, with memory-only NUMA nodes, GPUs and reserved cores."""
    numa, each, threads = (
        draw(st.integers(1, 4)),
        draw(st.integers(1, 6)),
        draw(st.sampled_from([1, 2, 4, 8])),
    )
    count, spread = numa * each, draw(st.booleans())

    def cpus(core: int) -> tuple[int, ...]:
        return tuple(core + t * count if spread else core * threads + t for t in range(threads))

    cores = tuple(Core(cpus=cpus(c), numa=c // each, l3=c // each, socket=0) for c in range(count))
    domains = [
        NumaNode(id=n, cpus=frozenset(cpu for core in cores if core.numa == n for cpu in core.cpus))
        for n in range(numa)
    ]
    domains += [NumaNode(id=numa, memory_bytes=8 << 30)] if draw(st.booleans()) else []
    gpus = tuple(Gpu(index=i, numa=draw(st.integers(0, numa - 1))) for i in range(draw(st.integers(0, 4))))
    nics = (Nic(name="hsn0", numa=0),) if draw(st.booleans()) else ()
    reserved = frozenset(cores[0].cpus) if count > 1 and draw(st.booleans()) else frozenset()
    return NodeTopology(cores=cores, numa_nodes=tuple(domains), gpus=gpus, nics=nics, reserved=reserved)


@pytest.mark.slow
@given(machines())
def test_the_profile_describes_the_node_it_was_made_from(machine: NodeTopology) -> None:
    text = profile_text("x", "generic-slurm", machine, "CPU", "here", dt.date(2026, 11, 20))
    base = "scheduler: {kind: slurm, launcher: srun}\n"
    tree = parse_tree(text.replace("extends: generic-slurm\n", base), "x.yaml")
    again = site_topology(checked(tree, SiteProfile))
    assert again is not None
    assert (again.cores, again.gpus, again.nics) == (machine.cores, machine.gpus, machine.nics)
    assert again.reserved == machine.reserved
    assert [(n.id, n.cpus) for n in again.numa_nodes] == [(n.id, n.cpus) for n in machine.numa_nodes]


def test_a_node_with_holes_in_its_numbers_is_refused() -> None:
    cores = (Core(cpus=(0, 4), numa=0), Core(cpus=(1,), numa=0))
    broken = NodeTopology(cores=cores, numa_nodes=(NumaNode(id=0, cpus=frozenset({0, 1, 4})),))
    with pytest.raises(BadInputError, match="numbered neither spread nor adjacent"):
        profile_text("x", "local", broken, "CPU", "here", dt.date(2026, 11, 20))


def new(*words: str) -> subprocess.CompletedProcess[str]:
    return hpclaunch_here("sites", "new", *words)


@pytest.mark.parametrize("base", base_profiles())
def test_the_live_node_becomes_a_site_by_name(base: str) -> None:
    answer = new("here", "--extends", base)
    assert answer.returncode == 0, answer.stderr
    made = site_topology(load_site("here"))
    live = read_live()
    assert made is not None
    assert [core.cpus for core in made.cores] == [core.cpus for core in live.cores]


def test_an_existing_profile_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "here.yaml"
    file.write_text("mine")
    answer = new("here", "--output", str(file))
    assert (answer.returncode, file.read_text()) == (3, "mine")
    assert "exists already" in answer.stderr


@pytest.mark.parametrize("name", ["in house", "", "-x", "a/b"])
def test_a_name_that_no_site_can_have_leaves_no_file(sites: Path, name: str) -> None:
    answer = new("--", name)
    assert (answer.returncode, answer.stdout) == (3, "")
    assert "cannot be the name of a site" in answer.stderr
    assert list(sites.iterdir()) == []


def test_a_shipped_profile_that_is_hidden_is_named() -> None:
    answer = new("lumi-g", "--extends", "generic-slurm")
    assert answer.returncode == 0
    assert "it hides the profile" in answer.stdout
    assert "site_profiles/lumi-g.yaml" in answer.stdout


NODES = "NodeName=n{0} Arch=x86_64 CoresPerSocket=64 CPUTot=128 Gres={1} RealMemory=480000 Sockets=2"
NODES += " ThreadsPerCore=1 State=IDLE Partitions=gpu"


@pytest.fixture
def login_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with Slurm's commands, all fake, whose nodes have 128 cores and 8 GPUs."""
    folder = tmp_path / "fake"
    folder.mkdir()
    nodes = "\n".join(NODES.format(number, "gpu:a100:8") for number in (1, 2))
    (folder / "nodes").write_text(nodes + "\n")
    (folder / "partition").write_text(
        "PartitionName=gpu AllowGroups=ALL Default=YES MaxNodes=2 MaxTime=1-00:00:00 OverSubscribe=NO"
        " State=UP TotalNodes=2 Nodes=n[1-2]\n"
    )
    (folder / "config").write_text(
        "ClusterName = lab\nSLURM_VERSION = 23.02.7\nSelectType = select/cons_tres\n"
    )
    (folder / "scontrol").write_text(
        f"#!/bin/sh\ncase $2 in node) cat {folder}/nodes;; partition) cat {folder}/partition;;"
        f" config) cat {folder}/config;; esac\n"
    )
    (folder / "sbatch").write_text("#!/bin/sh\nexit 1\n")
    for program in ("scontrol", "sbatch"):
        (folder / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_on_a_login_node_the_scheduler_describes_the_nodes(login_node: Path) -> None:
    answer = new("lab")
    assert answer.returncode == 0, answer.stderr
    assert "as none of Slurm's nodes has" in answer.stderr
    assert "2 nodes with 128 cores and 8 GPUs, as Slurm describes them" in answer.stderr
    text = (Path(os.environ["XDG_CONFIG_HOME"]) / "hpclaunch" / "sites" / "lab.yaml").read_text()
    assert "# queues:" not in text, "they are listed"
    assert "Add account, modules and fabric." in text
    assert "# software:" in text
    made = load_site("lab")
    assert made.node is not None
    assert (made.node.cores, len(made.node.gpus), made.node.gpu_vendor, made.node.count) == (
        128,
        8,
        "nvidia",
        2,
    )
    assert list(made.queues) == ["gpu"]
    assert made.queues["gpu"].max_nodes == 2
    assert made.scheduler.version == "23.02.7"
    assert new("twin").returncode == 0  # its name counts once: of two profiles with it none is detected
    assert hpclaunch_here("sites", "detect").stdout.startswith(
        "lab: scontrol show config: ClusterName is lab"
    )
    script = hpclaunch_here("submit", "--software", "none", "--dry-run", "--", "env").stdout
    assert "#SBATCH --ntasks-per-node=8" in script
    assert hpclaunch_here("sites", "validate", "lab").returncode == 0


def test_a_queue_without_gpus_is_described_with_its_limits(login_node: Path) -> None:
    """A job without GPUs in the usual queue names none, and a profile without it would know no limit."""
    (login_node / "nodes").write_text(NODES.format(1, "(null)") + "\n")
    assert new("lab").returncode == 0
    queue = load_site("lab").queues["gpu"]
    assert (queue.max_nodes, queue.max_walltime) == (2, "1-00:00:00")


def test_on_one_of_the_nodes_the_node_itself_is_measured(login_node: Path) -> None:
    live = read_live()
    sockets = f"Sockets=1 CoresPerSocket={len(live.cores)} CPUTot={len(live.cores)}"
    text = (login_node / "nodes").read_text().replace("gpu:a100:8", "(null)")
    text = text.replace("CoresPerSocket=64 CPUTot=128", "").replace("Sockets=2", sockets)
    (login_node / "nodes").write_text(text)
    answer = new("lab")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "with 1 queue of Slurm" in answer.stdout
    made = load_site("lab")
    assert made.node is not None
    assert made.node.numa  # which no scheduler tells


def test_where_the_scheduler_does_not_answer_that_is_said(login_node: Path) -> None:
    (login_node / "scontrol").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    answer = new("lab")
    assert answer.returncode == 0
    assert "Unable to contact slurm controller" in answer.stderr


@pytest.mark.parametrize("name", base_profiles())
def test_what_other_profiles_begin_with_is_not_hidden(name: str) -> None:
    answer = new(name)
    assert answer.returncode == 3
    assert f"NAME {name}" in answer.stderr


def test_a_saved_node_becomes_a_site(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "lscpu.txt").write_text("CPU(s): 4\nNUMA node0 CPU(s): 0-1\nNUMA node1 CPU(s): 2-3\n")
    answer = new("other", "--extends", "generic-slurm", "--from", str(saved))
    assert answer.returncode == 0, answer.stderr
    made = site_topology(load_site("other"))
    assert made is not None
    assert [sorted(node.cpus) for node in made.numa_nodes] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC 7A53\n", "AMD EPYC 7A53"),
        ("cpu\t\t: POWER9, altivec supported\n", "POWER9, altivec supported"),
        ("CPU part\t: 0xd4f\n", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_processors_name(text: str, name: str) -> None:
    assert cpu_model(text) == name
