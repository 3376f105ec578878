"""The partitions that scontrol prints, and a profile made from those of a real Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.cluster_facts import NodeGpus, NodeKind, QueueFacts
from hpclaunch.scheduler.slurm import SCHEDULER as SLURM
from hpclaunch.scheduler.slurm.slurm_nodes import reduced
from hpclaunch.site.load_profile import load_site
from tests.in_one_test import in_one_test
from tests.testbed.cluster import Slurm

# Keys as Slurm 22.05 prints them, the lines made up.
LINES = """\
PartitionName=debug AllowGroups=ALL Default=NO MaxNodes=2 MaxTime=00:30:00 MinNodes=0 RootOnly=NO \
OverSubscribe=NO State=UP TotalCPUs=64 TotalNodes=4 TRES=cpu=64,mem=1000M,node=4
PartitionName=gpu AllowGroups=ALL Default=YES MaxNodes=UNLIMITED MaxTime=2-00:00:00 MinNodes=2 RootOnly=NO \
OverSubscribe=EXCLUSIVE State=UP TotalCPUs=640 TotalNodes=10 TRES=cpu=640,node=10,gres/gpu=40
PartitionName=long Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED RootOnly=NO State=DOWN TotalNodes=9
PartitionName=admin Default=NO MaxTime=UNLIMITED RootOnly=YES State=UP TotalNodes=9
"""


def answer(text: str, exit_code: int = 0, stderr: str = "") -> CommandResult:
    return CommandResult(exit_code=exit_code, stdout=text, stderr=stderr)


def parse_partitions(said: CommandResult) -> tuple[QueueFacts, ...]:
    return SLURM.parse_facts({"queues": said}).queues


def test_the_default_partition_is_first_and_closed_ones_are_left_out() -> None:
    gpu, debug = parse_partitions(answer(LINES))
    assert (gpu.name, gpu.min_nodes, gpu.max_nodes, gpu.max_walltime) == ("gpu", 2, 10, "2-00:00:00")
    assert (gpu.whole_node, gpu.has_gpus) == (True, True)
    assert (debug.name, debug.min_nodes, debug.max_nodes, debug.max_walltime) == ("debug", 1, 2, "00:30:00")
    assert (debug.whole_node, debug.has_gpus) == (False, False)


def test_what_slurm_does_not_say_stays_open() -> None:
    (only,) = parse_partitions(answer("PartitionName=p MaxNodes=UNLIMITED MaxTime=UNLIMITED TRES=(null)\n"))
    assert (only.max_nodes, only.max_walltime, only.has_gpus) == (None, None, None)
    assert parse_partitions(answer("No partitions in the system\n")) == ()


def test_a_controller_that_does_not_answer_is_a_refusal() -> None:
    with pytest.raises(RefusedError, match="Unable to contact"):
        parse_partitions(answer("", 1, "slurm_load_partitions error: Unable to contact slurm controller\n"))


# A node as Slurm 22.05 prints it, with other names and values; the lines are made up.
NODE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=32  CPUAlloc=0 CPUEfctv={cpus} CPUTot=128 CPULoad=0.01"
    " AvailableFeatures={features} ActiveFeatures={features} Gres={gres} NodeAddr={name} NodeHostName={name}"
    " Version=22.05.8 OS=Linux 5.14.0-503.el9 #1 SMP PREEMPT_DYNAMIC Wed Apr 16 16:38:39 UTC 2025 "
    " RealMemory={memory} AllocMem=0 FreeMem=185 Sockets=2 Boards=1 State={state} ThreadsPerCore=2 TmpDisk=0"
    " Weight=1 Owner=N/A MCS_label=N/A Partitions={queues}  BootTime=2026-11-23T03:06:22"
    " CfgTRES=cpu=128,mem=480000M,billing=128 AllocTRES= Reason=Gres=gpu:9 is wrong [root@2026-01-01]"
)
USUAL = {
    "cpus": 128,
    "features": "(null)",
    "gres": "(null)",
    "memory": 512000,
    "state": "IDLE",
    "queues": "gpu",
}


def kinds(*nodes: dict[str, object]) -> tuple[NodeKind, ...]:
    lines = (NODE.format(**{"name": f"n{number}", **USUAL, **node}) for number, node in enumerate(nodes))
    return SLURM.parse_facts({"nodes": answer("\n".join(lines) + "\n")}).nodes


@in_one_test(
    "gres, gpus",
    [
        ("gpu:a100:4(S:0-1)", (("a100", 4, False),)),
        ("gpu:8(S:0-1)", ((None, 8, False),)),
        ("gpu:a100:3(S:0,1),gpu:1g.5gb:7(S:1)", (("a100", 3, False), ("1g.5gb", 7, True))),
        ("gpu:nvidia_h100_80gb_hbm3_1g.10gb:7", (("nvidia_h100_80gb_hbm3_1g.10gb", 7, True),)),
        ("lustre:no_consume:4K,gpu:2080ti:2,shard:16,mps:400", (("2080ti", 2, False),)),
        ("(null)", ()),
        ("gpu:0", ()),
    ],
)
def test_gpus_of_a_node(gres: str, gpus: tuple[tuple[str | None, int, bool], ...]) -> None:
    (kind,) = kinds({"gres": gres})
    assert tuple((each.type, each.count, each.are_slices) for each in kind.gpus) == gpus


def test_nodes_that_are_alike_are_one_kind() -> None:
    gpu, cpu = kinds(
        {"gres": "gpu:a100:4", "memory": 515003, "features": "a100,rack1"},
        {"gres": "gpu:a100:4", "memory": 515002, "features": "a100,rack2", "state": "DOWN*+DRAIN"},
        {
            "gres": "gpu:a100:4",
            "memory": 515001,
            "features": "rack3,a100",
            "state": "IDLE+CLOUD+POWERED_DOWN",
        },
        {"queues": "cpu,long"},
    )
    assert (gpu.nodes, gpu.in_service, gpu.memory_mib, gpu.features) == (3, 2, 515001, ("a100",))
    assert (gpu.sockets, gpu.cores, gpu.threads_per_core, gpu.gpus) == (
        2, 64, 2, (NodeGpus(type="a100", count=4),)
    )  # fmt: skip
    assert (cpu.queues, cpu.gpus) == ({"cpu": 1, "long": 1}, ())
    assert len(kinds({"memory": 256000}, {"memory": 1024000})) == 2


def test_a_partition_has_gpus_where_one_of_its_nodes_has_some() -> None:
    nodes = "\n".join(
        NODE.format(**{**USUAL, **each})
        for each in (
            {"name": "n1", "queues": "gpu,debug", "gres": "gpu:a100:4"},
            {"name": "n2", "queues": "long"},
        )
    )
    facts = SLURM.parse_facts(
        {
            "nodes": answer(nodes),
            "queues": answer("PartitionName=gpu\nPartitionName=debug\nPartitionName=long\n"),
        }
    )
    assert [queue.has_gpus for queue in facts.queues] == [True, True, False]


def test_cores_that_are_reserved_are_not_usable() -> None:
    (kind,) = kinds({"cpus": 112})
    assert (kind.cores, kind.usable_cpus, kind.usable_cores) == (64, 112, 56)


CONFIG = """\
Configuration data as of 2026-11-23T19:05:01
ClusterName             = lab
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
SLURM_VERSION           = 23.11.4
TaskPlugin              = task/cgroup,task/affinity

Cgroup Support Configuration:
ConstrainCores          = yes
"""


def test_settings_say_how_gpus_are_requested_and_what_holds_a_job_in_its_cores() -> None:
    facts = SLURM.parse_facts({"config": answer(CONFIG)})
    assert (facts.version, facts.cluster) == ("23.11.4", "lab")
    assert (facts.gpu_request, facts.counts_memory, facts.confines_cpus) == ("gpus-per-node", True, True)
    older = CONFIG.replace("cons_tres", "cons_res").replace("= yes", "= no").replace("_MEMORY", "")
    facts = SLURM.parse_facts({"config": answer(older)})
    assert (facts.gpu_request, facts.counts_memory, facts.confines_cpus) == ("gres", False, False)
    assert SLURM.parse_facts({"config": answer("", 1)}).confines_cpus is None


@pytest.mark.slurm
def test_a_profile_of_a_real_slurm_plans_and_submits_there(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))

    def hpclaunch(*words: str) -> str:
        command = [sys.executable, "-m", "hpclaunch", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout

    made = hpclaunch("sites", "new", "here", "--extends", "generic-slurm", "--output", "here.yaml")
    assert "with 2 queues of Slurm" in made
    queues = load_site(str(tmp_path / "here.yaml")).queues
    assert list(queues) == ["standard", "dev"]
    assert (queues["standard"].max_walltime, queues["dev"].max_walltime) == ("2-00:00:00", "00:30:00")
    assert queues["dev"].max_nodes == 1
    usual = ("--site", "./here.yaml", "--binding", "off", "--mpi", "none", "--time", "40m")
    assert "#SBATCH --partition=standard" in hpclaunch("submit", *usual, "--dry-run", "--", "hostname")
    state = hpclaunch("submit", *usual, "--tasks", "1", "--wait", "--json", "--", "hostname")
    assert json.loads(state)["state"] == "done"


@pytest.mark.slurm
def test_captured_files_of_a_real_slurm_give_a_profile_that_plans_checks_and_submits_there(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the cluster the files are captured; the profile is written elsewhere, without its scheduler."""

    def hpclaunch(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "hpclaunch", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ,
        )
        assert done.returncode == code, done.stderr
        return done

    hpclaunch("topology", "--save", "node")
    (tmp_path / "partitions").write_text(slurm.run("scontrol", "show", "partition", "--oneliner").stdout)
    captured = ("--extends", "generic-slurm", "--from", "node", "--queues", "partitions")
    made = hpclaunch("sites", "new", "there", *captured, "--output", "there.yaml")
    assert "with 2 queues of Slurm" in made.stdout

    job = ("--site", "./there.yaml", "--nodes", "2", "--mpi", "none", "--time", "40m")
    script = hpclaunch("submit", *job, "--dry-run", "--", "hostname").stdout
    assert "#SBATCH --partition=standard" in script
    assert "--cpu-bind=mask_cpu:" in script
    (tmp_path / "job.sh").write_text(script)
    hpclaunch("lint", "--site", "./there.yaml", "job.sh")
    hpclaunch("sites", "validate", "./there.yaml")
    refused = hpclaunch("submit", *job, "--partition", "dev", "--dry-run", "--", "hostname", code=3)
    assert "partition dev" in refused.stderr  # its limits are those that scontrol printed
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    done = hpclaunch("submit", *job, "--wait", "--json", "--", "hostname")
    assert json.loads(done.stdout)["state"] == "done"
    hpclaunch("verify", "last")


@pytest.mark.slow
def test_a_file_without_queues_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lscpu.txt").write_text("CPU(s): 2\nNUMA node0 CPU(s): 0-1\n")
    (tmp_path / "wrong").write_text("no such file\n")
    command = [sys.executable, "-m", "hpclaunch", "sites", "new", "x", "--extends", "generic-slurm"]
    command += ["--from", str(tmp_path), "--output", str(tmp_path / "x.yaml")]
    done = subprocess.run(
        [*command, "--queues", str(tmp_path / "wrong")], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 3
    assert "no queue that takes jobs is in it" in done.stderr
    assert not (tmp_path / "x.yaml").exists()


@in_one_test(
    "sockets, each, threads, cpus, expected",
    [
        (2, 32, 2, 128, 2),
        (2, 32, 2, 64, 1),  # CPUs is the number of cores: jobs get cores
        (2, 32, 1, 64, 1),
    ],
)
def test_threads_of_a_core_that_jobs_get(
    sockets: int, each: int, threads: int, cpus: int, expected: int
) -> None:
    text = NODE.format(**{"name": "n1", **USUAL})
    for was, is_now in (
        ("CPUTot=128", f"CPUTot={cpus}"),
        ("ThreadsPerCore=2", f"ThreadsPerCore={threads}"),
        ("Sockets=2", f"Sockets={sockets}"),
        ("CoresPerSocket=32", f"CoresPerSocket={each}"),
    ):
        text = text.replace(was, is_now)
    (kind,) = SLURM.parse_facts({"nodes": answer(f"{text}\n")}).nodes
    assert (kind.cores, kind.threads_per_core) == (sockets * each, expected)


def test_nodes_that_are_alike_are_one_line_with_their_number() -> None:
    """What differs from node to node does not count, but for the state; the reason is left out."""
    lines = [
        f"NodeName=n{at} Arch=x86_64 CPULoad={at} State={state} CPUTot=8 Reason=by {at} hand [me]\n"
        for at, state in ((1, "IDLE"), (2, "IDLE"), (3, "DOWN"))
    ]
    assert reduced("".join(lines) + "\n") == (
        "NodeName=n1 Arch=x86_64 CPULoad=1 State=IDLE CPUTot=8 HpclaunchNodes=2\n"
        "NodeName=n3 Arch=x86_64 CPULoad=3 State=DOWN CPUTot=8 HpclaunchNodes=1\n"
    )
    other = "NodeName=n4 Arch=x86_64 CPULoad=1 State=IDLE CPUTot=16\n"
    assert reduced(lines[0] + other).count("HpclaunchNodes=1") == 2
