"""Every rank proves its binding: right ones are told right, and wrong ones, forced here, wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpclaunch.job.job_documents import VerifyDocument
from hpclaunch.job.record import RankReport, read_report, table, verdict
from tests.in_one_test import in_one_test
from tests.launcher_environments import environments, variables
from tests.own_process import hpclaunch
from tests.scripts import rank_shell
from tests.testbed.cluster import Slurm

LINE = (
    "hpclaunch-binding rank={rank} host=n1 local_rank=0 cpus=0-1 planned=0-1 mems=0 gpus=0 bus=b gpu_numa=0"
    " verdict={verdict}"
)


def last_verdict() -> tuple[int, dict[str, Any]]:
    answer = hpclaunch("verify", "last", "--json")
    msgspec.json.decode(answer.stdout, type=VerifyDocument)
    return answer.returncode, json.loads(answer.stdout)


def test_a_log_is_read_with_anything_in_it() -> None:
    log = "\n".join(
        [
            "noise",
            "3: " + LINE.format(rank=1, verdict="ok"),
            LINE.format(rank=0, verdict="cpus-differ"),
            "hpclaunch-binding rank=x",
            "hpclaunch-binding ",
            LINE.format(rank=0, verdict="ok"),
        ]
    )
    reports = read_report(log)
    assert [(report.rank, report.verdict) for report in reports] == [(0, "ok"), (1, "ok")]
    assert verdict(log, 2).ok
    assert not verdict(log, 3).ok
    assert "2 of 3 ranks reported" in verdict(log, 3).finding
    assert table(reports).splitlines()[1].split()[:3] == ["0", "n1", "0"]
    assert table(reports).split().count("later") == 1
    attached = table(reports, looked_again=False).splitlines()
    assert "later" not in attached[0], "verify --attach looks once"
    assert attached[1].endswith("ok")


def fake_taskset(folder: Path) -> Path:
    """A taskset that binds nothing: what a launcher that ignores the plan looks like."""
    file = folder / "taskset"
    file.write_text("#!/bin/sh\nexit 0\n")
    file.chmod(0o755)
    return folder


@pytest.mark.mpi
@pytest.mark.parametrize(("binding", "code", "state"), [("warn", 0, "done"), ("strict", 1, "failed")])
def test_a_binding_that_was_not_made_is_found(
    binding: str, code: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{fake_taskset(tmp_path)}:{os.environ['PATH']}")
    usual = ("submit", "--site", "local", "--tasks", "2", "--binding", binding, "--json")
    answer = hpclaunch(*usual, "--", "echo", "the program ran")
    assert (answer.returncode, json.loads(answer.stdout)["state"]) == (code, state)
    assert ("the program ran" in answer.stderr) == (binding == "warn")
    exit_code, document = last_verdict()
    assert (exit_code, document["ok"]) == (1, False)
    assert {rank["verdict"] for rank in document["ranks"]} == {"cpus-differ"}
    assert "a change after the last look is not seen" in document["note"]
    picture = tmp_path / "got.svg"
    assert hpclaunch("verify", "last", "--picture", str(picture)).returncode == 1
    assert "r0, rank 0 of the job: cpus-differ, planned CPUs" in picture.read_text()
    log = hpclaunch("logs", "last").stdout
    assert "hpclaunch-binding" not in log, "the log is the program's"
    shown = hpclaunch("status", "last").stdout
    assert "binding" in shown
    assert "2 of 2 ranks did not get their binding: rank 0 (cpus-differ), 1 (cpus-differ)" in shown


@pytest.fixture(scope="module")
def small_slurm() -> Iterator[Slurm]:
    """A Slurm whose one node is this machine's own cores, so that it really binds."""
    cores = len(os.sched_getaffinity(0))
    cluster = Slurm(
        NODES="1", GPUS="0", HW=f"Sockets=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory=2000"
    )
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.mark.slurm
def test_slurm_binds_as_planned_and_a_forced_wrong_mask_is_found(
    small_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(small_slurm.conf))
    assert hpclaunch("sites", "new", "here", "--extends", "generic-slurm").returncode == 0
    asked = (
        "submit",
        "--site",
        "here",
        "--nodes",
        "1",
        "--tasks",
        "2",
        "--mpi",
        "none",
        "--binding",
        "strict",
    )
    cores = len(os.sched_getaffinity(0))
    rebinds = f'[ "$RANK" = 0 ] || exec taskset -c 0-{cores - 1} sh -c "sleep 4; :"; sleep 4'
    answer = hpclaunch(*asked, "--wait", "--json", "--", "sh", "-c", rebinds)
    assert answer.returncode == 0, answer.stderr
    exit_code, document = last_verdict()
    finding = (
        f"all 2 ranks got their binding; 1 left it for other CPUs while running: rank 1 (sh: 0-{cores - 1})"
    )
    assert (exit_code, document["finding"]) == (1, finding)
    assert [rank["later"] for rank in document["ranks"]] == [[], [{"cpus": f"0-{cores - 1}", "name": "sh"}]]
    assert finding in " ".join(hpclaunch("status", "last").stdout.split())
    picture = tmp_path / "got.svg"
    assert hpclaunch("verify", "last", "--picture", str(picture)).returncode == 1
    planned = [rank["planned"] for rank in last_verdict()[1]["ranks"]]
    for local_rank, cpus in enumerate(planned):
        assert f"r{local_rank}: CPUs {cpus}<" in picture.read_text()
    assert f"r1, rank 1 of the job: sh went to CPUs 0-{cores - 1} while running" in picture.read_text()
    assert "no rank of job" in hpclaunch("verify", "last", "--picture", "x.svg", "--node", "n9").stderr

    save = ("--dry-run", "--save", str(tmp_path / "saved"))
    script = hpclaunch(*asked, *save, "--", "echo", "the program ran").stdout
    masks = next(word for word in script.split() if word.startswith("--cpu-bind=mask_cpu:"))
    first, second = masks.partition(":")[2].split(",")
    file, output = tmp_path / "job.sh", tmp_path / "out"
    file.write_text(script.replace(masks, f"--cpu-bind=mask_cpu:{second},{first}"))
    done = subprocess.run(
        ["sbatch", "--wait", f"--output={output}", str(file)], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 1
    (reports,) = tmp_path.glob("hpclaunch-*/binding/*")
    assert {report.verdict for report in read_report(reports.read_text())} == {"cpus-differ"}
    assert "hpclaunch-binding" not in output.read_text()
    assert "did not get its binding (cpus-differ); ended by --binding strict" in output.read_text()
    assert "the program ran" not in output.read_text()


LUMI = ("--site", "lumi-g", "--account", "project_465000001")


@lru_cache
def shell_of(*options: str) -> str:
    """The shell of the ranks, by default LUMI-G's."""
    return rank_shell(*(options or LUMI), "--", "true")


def fake_lumig_node(root: Path, cpus: str, swap: bool = False, mems: str = "0-3", gpus: int = 8) -> None:
    """A /proc and /sys as rank 2 of a LUMI-G node has them: eight GCDs behind one CPU node of kfd."""
    numa = [3, 3, 1, 1, 0, 0, 2, 2]
    bus = [0xC1, 0xC6, 0xC9, 0xCE, 0xD1, 0xD6, 0xD9, 0xDE]
    if swap:
        bus[2], bus[4] = bus[4], bus[2]
        numa[2], numa[4] = numa[4], numa[2]
    files = {
        "proc/self/status": f"Name:\tbash\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{mems}\n",
        "proc/sys/kernel/hostname": "nid005001\n",
        "sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 128\nsimd_count 0\n",
    }
    for gpu in range(gpus):
        node = f"sys/class/kfd/kfd/topology/nodes/{gpu + 1}/properties"
        files[node] = f"cpu_cores_count 0\nsimd_count 440\nlocation_id {bus[gpu] << 8}\ndomain 0\n"
        files[f"sys/bus/pci/devices/0000:{bus[gpu]:02x}:00.0/numa_node"] = f"{numa[gpu]}\n"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cpus", "swap", "found"),
    [("17-23", False, "ok"), ("16-23", False, "cpus-differ"), ("17-23", True, "gpu-on-another-numa-node")],
)
def test_a_rank_of_lumi_g_tells_its_gpu_by_address_and_numa_node(
    cpus: str, swap: bool, found: str, tmp_path: Path
) -> None:
    fake_lumig_node(tmp_path, cpus, swap)
    environment = {
        **os.environ,
        "HPCLAUNCH_SYSROOT": str(tmp_path),
        "SLURM_PROCID": "10",
        "SLURM_LOCALID": "2",
    }
    command = ["bash", "-c", shell_of(), "rank", "true"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    (report,) = read_report(done.stdout)
    assert (report.rank, report.host, report.local_rank) == (10, "nid005001", 2)
    assert (report.cpus, report.planned, report.gpus) == (cpus, "17-23", "2")
    assert report.bus == ("0000:d1:00.0" if swap else "0000:c9:00.0")
    assert report.gpu_numa == ("0" if swap else "1")
    assert report.verdict == found


def look_at(root: Path, **more: str) -> RankReport:
    """The report of local rank 2, whose cores are on NUMA node 1, and whose GPU is number 2."""
    environment = {**os.environ, "HPCLAUNCH_SYSROOT": str(root), "SLURM_PROCID": "2", "SLURM_LOCALID": "2"}
    program = ["bash", "-c", shell_of(), "rank", "env"]
    done = subprocess.run(program, env={**environment, **more}, capture_output=True, text=True, check=True)
    (report,) = read_report(done.stdout)
    return report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mems", "policy", "found", "said"),
    [
        ("0-3", "default", "ok", "0-3"),
        ("1", "default", "ok", "1"),
        ("0,1,3", "default", "ok", "0,1,3"),
        ("0,2-3", "default", "memory-on-another-numa-node", "0,2-3"),
        ("0", "default", "memory-on-another-numa-node", "0"),
        ("10-13", "default", "memory-on-another-numa-node", "10-13"),
        ("0-3", "bind:3", "memory-on-another-numa-node", "3"),
        ("0-3", "bind=static:0,2", "memory-on-another-numa-node", "0,2"),
        ("0-3", "bind:1", "ok", "1"),
        ("0-3", "prefer:3", "memory-on-another-numa-node", "prefer:3"),
        ("0-3", "prefer=static:1", "ok", "prefer=static:1"),
        ("0-3", "prefer (many):2-3", "memory-on-another-numa-node", "prefer-many:2-3"),
        ("0-3", "prefer (many):0-1", "ok", "prefer-many:0-1"),
        ("0-3", "interleave:0-3", "memory-on-another-numa-node", "interleave:0-3"),
        ("0-3", "interleave:1", "ok", "interleave:1"),
        ("0-3", "weighted interleave:1,3", "memory-on-another-numa-node", "weighted-interleave:1,3"),
        ("0-3", "local", "ok", "0-3"),
        ("0-3", "of-a-later-kernel:1", "not-judged", "of-a-later-kernel:1"),
    ],
)
def test_memory_on_another_numa_node_is_judged(
    mems: str, policy: str, found: str, said: str, tmp_path: Path
) -> None:
    fake_lumig_node(tmp_path, "17-23", mems=mems)
    (tmp_path / "proc" / "self" / "numa_maps").write_text(f"558f0000 {policy} file=/bin/bash mapped=1\n")
    report = look_at(tmp_path)
    assert (report.verdict, report.mems) == (found, said)


@pytest.mark.parametrize(
    ("gpus", "found"), [(8, "ok"), (3, "ok"), (2, "no-such-gpu"), (1, "no-such-gpu"), (0, "ok")]
)
def test_a_gpu_beyond_those_of_the_node_is_judged(gpus: int, found: str, tmp_path: Path) -> None:
    """Where no driver shows any GPU, nothing can be said of them."""
    fake_lumig_node(tmp_path, "17-23", gpus=gpus)
    assert look_at(tmp_path).verdict == found


POLARIS = ("--site", "polaris", "--account", "MyProject")
UUIDS = [f"GPU-{number}932f937-d72c-4106-c12f-20bd9faed9f6" for number in range(4)]


def fake_polaris_node(root: Path, shown: bool = True) -> None:
    """A /proc and /sys as rank 2 of a Polaris node has them; ``information`` as NVIDIA's driver writes it."""
    buses = ["0000:07:00.0", "0000:46:00.0", "0000:85:00.0", "0000:c7:00.0"]
    files = {
        "proc/self/status": "Cpus_allowed_list:\t8-15\nMems_allowed_list:\t0-3\n",
        "proc/sys/kernel/hostname": "x3001\n",
    }
    for bus, uuid, numa in zip(buses, UUIDS, (3, 2, 1, 0), strict=True):
        name = uuid if shown else "GPU-????????-????-????-????-????????????"
        text = f"Model: \t\t NVIDIA A100\nIRQ:   \t\t 160\nGPU UUID: \t {name}\nBus Type: \t PCIe\n"
        files[f"proc/driver/nvidia/gpus/{bus}/information"] = text
        files[f"sys/bus/pci/devices/{bus}/numa_node"] = f"{numa}\n"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpus", "shown", "found", "bus"),
    [
        (UUIDS[2], True, "ok", "0000:85:00.0"),
        (UUIDS[2][:12], True, "ok", "0000:85:00.0"),
        (UUIDS[1], True, "gpu-on-another-numa-node", "0000:46:00.0"),
        (UUIDS[2], False, "not-judged", "unknown"),
        ("MIG-4b1a7e1c-5b3e-5d2b-9d0a-0c2c6b0b0b0b", True, "not-judged", "unknown"),
        (f"MIG-{UUIDS[2]}/1/0", True, "not-judged", "unknown"),
        ("-1", True, "no-such-gpu", "unknown"),
        ("NoDevFiles", True, "no-such-gpu", "unknown"),
    ],
)
def test_gpus_that_are_named_by_other_than_a_number(
    gpus: str, shown: bool, found: str, bus: str, tmp_path: Path
) -> None:
    """As a wrapper, or a script that was changed by hand, names them: what cannot be compared is never ok."""
    fake_polaris_node(tmp_path, shown)
    usual = "export CUDA_VISIBLE_DEVICES=0,1,2,3  #"
    for option, ends in (("warn", False), ("strict", found not in ("ok", "not-judged"))):
        shell = shell_of(*POLARIS, "--binding", option)
        assert usual in shell
        environment = {
            **os.environ,
            "HPCLAUNCH_SYSROOT": str(tmp_path),
            "PALS_RANKID": "2",
            "PALS_LOCAL_RANKID": "2",
        }
        command = [
            "bash",
            "-c",
            shell.replace(usual, f"export CUDA_VISIBLE_DEVICES=0,1,{gpus},3  #"),
            "rank",
            "true",
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        (report,) = read_report(done.stdout)
        assert (report.verdict, report.bus, report.gpus, done.returncode) == (found, bus, gpus, int(ends))


@pytest.mark.parametrize(
    ("more", "why"), [({"gpus": "MIG-x"}, "GPU MIG-x"), ({"mems": "new:1"}, "memory policy new:1")]
)
def test_a_rank_that_could_not_be_judged_is_not_ok_and_not_wrong(more: dict[str, str], why: str) -> None:
    line = LINE.format(rank=0, verdict="not-judged")
    for name, value in more.items():
        line = re.sub(f"{name}=[^ ]*", f"{name}={value}", line)
    judged = verdict(line, 1)
    assert (judged.ok, judged.finding) == (False, f"1 of 1 ranks could not be judged: rank 0 ({why})")
    assert (judged.ranks[0].ok, judged.ranks[0].wrong) == (False, False)


@pytest.mark.slow
def test_the_report_and_the_sampler_know_each_rank_on_aurora(tmp_path: Path) -> None:
    """PALS sets no PMI_RANK there; local rank 0 alone would start the sampler."""
    shell = shell_of("--site", "aurora", "--account", "a", "--nodes", "2")
    (recorded,) = (each for each in environments("pals") if each["site"] == "aurora")
    for rank, cpus in ((17, "41-48"), (23, "93-100")):
        job = tmp_path / str(rank)
        (job / "samples").mkdir(parents=True)
        given = variables(recorded, rank, nodes=2, each=12) | {"HPCLAUNCH_JOB_FOLDER": str(job)}
        done = subprocess.run(
            ["bash", "-c", shell, "rank", "true"], env={**os.environ, **given}, capture_output=True, text=True
        )
        (report,) = read_report(done.stdout)
        assert (report.rank, report.local_rank, report.planned) == (rank, rank % 12, cpus)
        (sampled,) = (job / "samples").iterdir()
        assert sampled.read_text().startswith(f"rank {rank} ")


def test_the_report_changes_no_variable_of_the_program(tmp_path: Path) -> None:
    fake_lumig_node(tmp_path, "17-23")
    names = ("report", "host", "node", "rest", "range", "policy", "verdict", "found", "id", "key", "value")
    environment = {
        **os.environ,
        "HPCLAUNCH_SYSROOT": str(tmp_path),
        "SLURM_PROCID": "2",
        "SLURM_LOCALID": "2",
    }
    program = ["bash", "-c", shell_of(), "rank", "env"]
    own = dict.fromkeys(names, "the user's")
    done = subprocess.run(program, env={**environment, **own}, capture_output=True, text=True, check=True)
    assert {line for line in done.stdout.splitlines() if line.endswith("=the user's")} == {
        f"{name}=the user's" for name in names
    }


def later(found: str) -> str:
    return f"hpclaunch-later rank=0 found={found}"


@in_one_test(
    "lines, ok, said",
    [
        ([later("")], True, "the rank got its binding"),
        ([later("1@python")], True, "1 changed it within their CPUs while running: rank 0 (python: 1)"),
        (
            [later("1@python"), later("1@python;0-3@pool")],
            False,
            "1 left it for other CPUs while running: rank 0 (pool: 0-3)",
        ),
        (
            [later("2@python;$(x)@pool"), later("99999999@x"), later(";;")],
            True,
            "the rank got its binding",
        ),
    ],
)
def test_what_a_program_changes_later_is_judged(lines: list[str], ok: bool, said: str) -> None:
    """CPUs 0 and 1 are those of the plan; text that is not a list of CPUs is not a report."""
    judged = verdict("\n".join([LINE.format(rank=0, verdict="ok"), *lines]), 1)
    assert (judged.ok, judged.finding.rpartition("; ")[2]) == (ok, said)


LOOKS_BACK = """
import os
me, watch = f"/proc/{os.getppid()}", None  # the shell, which waits for it
while watch is None:
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{process}/cwd") == me and len(os.listdir(f"/proc/{process}/fd")) == 4:
                watch = process
        except OSError:
            pass
files = lambda process: {os.readlink(f"/proc/{process}/fd/{fd}") for fd in os.listdir(f"/proc/{process}/fd")}
try:
    os.wait()
except ChildProcessError:
    mine = {os.readlink(f"/proc/self/fd/{fd}") for fd in (1, 2, %d)}
    print(watch, sorted(mine & files(watch)))
"""


@pytest.mark.slow
def test_the_second_look_is_no_part_of_the_program(tmp_path: Path) -> None:
    """It is not among the program's children, holds none of its files, and ends with it."""
    fd = os.open(tmp_path / "the programs", os.O_CREAT | os.O_RDWR)
    program = [sys.executable, "-c", LOOKS_BACK % fd]
    shell = ["bash", "-c", shell_of("--site", "local", "--tasks", "1"), "rank", *program]
    (tmp_path / "binding").mkdir()
    environment = {**os.environ, "HPCLAUNCH_RANK": "0", "HPCLAUNCH_JOB_FOLDER": str(tmp_path)}
    done = subprocess.run(shell, env=environment, pass_fds=[fd], capture_output=True, text=True, check=True)
    watch, shared = done.stdout.split(maxsplit=1)
    assert shared == "[]\n"
    while Path("/proc", watch).exists():
        time.sleep(0.1)


def test_wrong_ranks_are_named_before_missing_ones() -> None:
    log = LINE.format(rank=1, verdict="no-such-gpu")
    assert verdict(log, 4).finding == (
        "1 of 4 ranks did not get their binding: rank 1 (no-such-gpu); 1 of 4 ranks reported their binding"
    )
