"""The sampler: a real process that watches real ones; GPUs and energy are recorded trees and fake tools."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpclaunch.lint.shellcheck import find_shellcheck
from hpclaunch.package_data import resource_dir
from hpclaunch.usage.node_samples import GpuSample, NodeRun, read_samples

pytestmark = pytest.mark.slow  # it looks each second

SAMPLER = resource_dir("remote") / "sampler.sh"
FAKES = Path(__file__).parents[1] / "fakes" / "fake_gpu_counters"
BUSY = """
import os, sys, threading, time
memory = bytearray(100 << 20)
if os.fork() == 0:
    time.sleep(100)
for _ in range(20):
    threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
while True:
    pass
"""


class Sampled:
    """A rank, and the sampler that watches it."""

    def __init__(self, folder: Path, program: str, every: int = 1, **environ: str) -> None:
        self.file = folder / "node"
        self.rank = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
        self.file.write_text(f"rank 3 {self.rank.pid} {int(time.time())}\n")
        words = ["bash", str(SAMPLER), str(self.rank.pid), str(every), str(self.file)]
        self.sampler = subprocess.Popen(words, env={**os.environ, **environ}, stderr=subprocess.DEVNULL)

    def looks(self, count: int) -> NodeRun:
        """Wait for that many looks and return the run."""
        while self.file.read_text().count("\nnode ") < count:
            time.sleep(0.1)
        return self.run

    @property
    def run(self) -> NodeRun:
        found = read_samples("n1", self.file.read_text())
        assert found.damaged == 0
        return found.runs[-1]

    def end(self) -> None:
        """End both."""
        os.killpg(self.rank.pid, signal.SIGKILL)
        self.rank.wait()
        self.sampler.wait()


@pytest.fixture
def no_tools(tmp_path: Path) -> Path:
    """A folder for PATH with what the sampler calls, and no tool of a GPU."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "timeout", "sleep"):
        (folder / name).symlink_to(shutil.which(name) or "")
    return folder


@pytest.fixture
def sampled(tmp_path: Path) -> Iterator[list[Sampled]]:
    """What a test starts goes into this list, and is ended."""
    started: list[Sampled] = []
    yield started
    for one in started:
        if one.rank.returncode is None:
            one.end()


@pytest.mark.slow
def test_cpu_and_memory_of_a_rank_are_those_of_all_its_processes(
    tmp_path: Path, sampled: list[Sampled]
) -> None:
    """A busy loop takes one core at most; 100 MiB are in it, and again in the process that it has forked."""
    one = Sampled(tmp_path, BUSY)
    sampled.append(one)
    before = one.looks(2).ranks[3][-1]
    after = one.looks(5).ranks[3][-1]
    ticks = Path(f"/proc/{one.rank.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    assert 0 < after.cpu_s - before.cpu_s <= 1.2 * (after.time - before.time + 1)
    assert after.cpu_s <= sum(map(int, ticks)) / 100
    assert 200 << 20 <= after.memory <= 400 << 20
    assert 100 << 20 <= after.peak <= 200 << 20
    node = one.run
    assert node.ranks_started.keys() == {3}
    assert node.cpus == os.cpu_count()
    assert node.looks[-1].cpu_all > node.looks[0].cpu_all
    assert 0 < node.looks[-1].memory < node.memory_of


@pytest.mark.parametrize("how", ["rank killed", "TERM"])
def test_it_ends_with_its_rank_and_by_sigterm(how: str, tmp_path: Path, sampled: list[Sampled]) -> None:
    """The signals that launchers pass on for checkpoints do not end it; its last line is that of its end."""
    one = Sampled(tmp_path, "import time; time.sleep(100)", every=60)
    sampled.append(one)
    one.looks(1)
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGHUP):
        one.sampler.send_signal(number)
    if how == "TERM":
        one.sampler.terminate()
        assert one.sampler.wait() == 0
        assert one.rank.poll() is None
    else:
        one.end()
        assert one.sampler.returncode == 0
    assert one.run.end is not None
    assert len(one.run.looks) == 2


def cray(root: Path, joule: int, micro: int) -> None:
    """Write the counters of an HPE Cray EX node with AMD GPUs below ``root``."""
    counters = root / "sys/cray/pm_counters"
    gpu = root / "sys/class/drm/card0/device"
    rapl = root / "sys/class/powercap/intel-rapl:0"
    for folder in (counters, gpu / "hwmon/hwmon4", rapl):
        folder.mkdir(parents=True, exist_ok=True)
    for name, value in (("energy", joule), ("cpu_energy", joule // 5), ("accel0_energy", joule // 2)):
        (counters / name).write_text(f"{value} J 1700000000000000 us\n")
    (counters / "power").write_text("900 W 1700000000000000 us\n")
    (counters / "freshness").write_text("1234\n")
    for name, text in (
        ("gpu_busy_percent", "87"),
        ("mem_info_vram_used", "1048576"),
        ("mem_info_vram_total", "68702699520"),
    ):
        (gpu / name).write_text(f"{text}\n")
    (gpu / "hwmon/hwmon4/power1_average").write_text("290000000\n")
    (gpu / "uevent").write_text("DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_SLOT_NAME=0000:c1:00.0\n")
    (rapl / "name").write_text("package-0\n")
    (rapl / "energy_uj").write_text(f"{micro}\n")
    (rapl / "max_energy_range_uj").write_text("262143328850\n")


def test_counters_of_a_cray_node_and_of_amd_gpus_need_no_tool(
    tmp_path: Path, sampled: list[Sampled], no_tools: Path
) -> None:
    root = tmp_path / "root"
    cray(root, 1_000_000, 500)
    one = Sampled(tmp_path, "import time; time.sleep(100)", HPCLAUNCH_SYSROOT=str(root), PATH=str(no_tools))
    sampled.append(one)
    one.looks(1)
    cray(root, 1_009_000, 900)
    looks = len(one.run.looks)
    run = one.looks(looks + 2)
    assert run.looks[0].values["energy"] == 1_000_000
    assert run.looks[-1].values["energy"] == 1_009_000
    assert run.looks[-1].values["accel0_energy"] == 504_500
    assert run.looks[-1].rapl == {"intel-rapl:0": (900, 262143328850)}
    assert run.gpu_source == "amdgpu"
    gpu = run.gpus["0000:c1:00.0"][0]
    assert gpu == GpuSample(gpu.time, 87.0, 1 << 20, 68702699520, 290.0)


@pytest.mark.parametrize(
    ("tool", "gpus"),
    [
        (
            "nvidia-smi",
            {"0000:07:00.0": (60.0, 61234 << 20, 412.5), "0000:0a:00.0": (30.0, 1024 << 20, None)},
        ),
        ("amd-smi", {"0": (55.0, 98296 << 20, 350.0), "1": (None, 1024 << 20, None)}),
        ("rocm-smi", {"0000:c1:00.0": (70.0, 34351349760, 290.0), "0000:c6:00.0": (30.0, 10977280, None)}),
    ],
)
def test_tools_of_gpus_are_started_once_and_end_with_it(
    tool: str,
    gpus: dict[str, tuple[float, int, float]],
    tmp_path: Path,
    sampled: list[Sampled],
    no_tools: Path,
) -> None:
    """rocm-smi, which has no such mode, is started for the second of ten looks."""
    (no_tools / tool).symlink_to(FAKES / tool)
    one = Sampled(
        tmp_path, "import time; time.sleep(100)", HPCLAUNCH_SYSROOT=str(tmp_path), PATH=str(no_tools)
    )
    sampled.append(one)
    run = one.looks(4)
    assert run.gpu_source == tool
    for name, (busy, memory, power) in gpus.items():
        known = [look.busy for look in run.gpus[name] if look.busy is not None]
        assert (sum(known) / len(known) if known else None) == busy
        assert (run.gpus[name][0].memory, run.gpus[name][0].power_w) == (memory, power)
    one.sampler.terminate()
    one.sampler.wait()
    while any(is_of(path, tmp_path) for path in Path("/proc").glob("[0-9]*/environ")):
        time.sleep(0.05)  # it was told to end, and may take a moment


def is_of(environ: Path, folder: Path) -> bool:
    """Whether a living process other than the rank was started for this test."""
    try:
        state = (environ.parent / "stat").read_text().rpartition(")")[2].split()[0]
        return f"HPCLAUNCH_SYSROOT={folder}\0".encode() in environ.read_bytes() and state not in "ZX"
    except OSError:
        return False


def test_shellcheck_finds_nothing_in_it() -> None:
    done = subprocess.run([str(find_shellcheck()), str(SAMPLER)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_damaged_files_lose_only_their_damaged_lines() -> None:
    text = (
        "rank 0 77 1000\nrank 1 78 x\nstart 1002 every=30 run=0 cpus=4 mem=1024 cgroup=job\n"
        "node 1002 cpu=10/40 mem=512 now=5 peak=9 limit=max used=7\nproc 1002 0 5 100 200 1\n"
        "node 1032 cpu=30/120 mem=6"
    )
    found = read_samples(
        "n1", text + "\nnode 1062 cpu\0\nproc\n\nstart 2000 every=30 run=1\nrank 0 80 2001\n"
    )
    assert found.damaged == 4
    first, second = found.runs
    assert (first.ranks_started, second.ranks_started, second.label) == ({0: 1000}, {0: 2001}, "1")
    assert (first.own_cgroup, first.looks[0].values) == (True, {"now": 5, "peak": 9, "used": 7})
    for cut in range(len(text)):  # a file that was cut anywhere is read
        read_samples("n1", text[:cut])


@pytest.mark.parametrize(
    ("text", "address"),
    [("00000000:07:00.0", "0000:07:00.0"), ("0000:C1:00.0", "0000:c1:00.0"), ("card0", "card0")],
)
def test_addresses_are_written_as_the_kernel_does(text: str, address: str) -> None:
    (run,) = read_samples("n1", f"start 1 every=1\nnvidia-smi 2 {text}, 50, 100, 200, 30\n").runs
    assert run.gpus == {address: [GpuSample(2, 50.0, 100 << 20, 200 << 20, 30.0)]}


def test_the_line_at_the_end_of_the_log(tmp_path: Path) -> None:
    """It adds all nodes and runs up; nothing is said of samples that do not cover one interval."""
    looks = (
        "node {0} cpu=100/400 mem=1048576 energy=1000\nnode {1} cpu=6100/24400 mem=3145728 energy=3601000\n"
    )
    for name in ("n1", "n2"):
        start = "start 1000 every=30 run=0 cpus=4 mem=8388608 cgroup=none\n"
        ranks = f"proc 1000 {name[1]} 0 5 5 1\nproc 1060 {name[1]} 6000 1048576 {1 << int(name[1]) + 19} 1\n"
        (tmp_path / name).write_text(start + looks.format(1000, 1060) + ranks)
    words = ["bash", str(SAMPLER), "summary", str(tmp_path), "20261122-1-ab"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert said == (
        "hpclaunch: 2 nodes, 2 ranks: they kept 1.0 CPUs of a node busy on average, at most 2.0 of 8.0 GiB in"
        " use (n2), 2 kWh; more: hpclaunch report 20261122-1-ab\n"
    )
    small = "proc 1000 1 0 5 5 1\nproc 1060 1 6000 42700 1 1\n"
    (tmp_path / "n1").write_text(start + looks.format(1000, 1060) + small)
    (tmp_path / "n2").unlink()
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "at most 42 MiB of 8.0 GiB in use (n1)" in said, "not 0.0 of 8.0 GiB"
    (tmp_path / "n1").write_text(start + looks.format(1000, 1010))
    (tmp_path / "n2").write_text(start)
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == ""
