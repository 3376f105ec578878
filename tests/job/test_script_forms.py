"""A job's script as people take it away: with its files, alone, plain. Each is submitted by hand to Slurm."""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]
ASKED = ("submit", "--site", "generic-slurm", "--mpi", "none", "--time", "5m")
RANKS = 'echo "rank $RANK of $WORLD_SIZE, number $LOCAL_RANK, on $(hostname)"'


@pytest.fixture(autouse=True)
def on_slurm(slurm: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Slurm:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    monkeypatch.chdir(tmp_path)
    return slurm


def sbatch(script: Path) -> tuple[int, list[str]]:
    """Submit by hand; its exit status and the lines of its output."""
    words = ["sbatch", "--wait", f"--output={script.parent / 'out'}", str(script)]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.returncode, (script.parent / "out").read_text().splitlines()


FOUR = sorted(f"rank {rank} of 4, number {rank % 2}, on n{1 + rank // 2}" for rank in range(4))
NODES = ("--nodes", "2", "--tasks-per-node", "2")


def test_a_saved_script_has_all_that_a_submitted_one_has(tmp_path: Path) -> None:
    folder = tmp_path / "it's mine"
    answer = hpclaunch(*ASKED, *NODES, "--dry-run", "--save", str(folder), "--", "sh", "-c", RANKS)
    assert (answer.returncode, answer.stdout) == (0, (folder / "job.sh").read_text())
    code, lines = sbatch(folder / "job.sh")
    assert (code, sorted(line for line in lines if line.startswith("rank"))) == (0, FOUR)
    (job,) = tmp_path.glob("hpclaunch-*")
    assert (job / "exit_status").read_text() == "0\n"
    assert {path.name for path in (job / "samples").iterdir()} == {"n1", "n2"}

    (folder / "files").rename(folder / "moved")
    code, lines = sbatch(folder / "job.sh")  # neither without its proof nor without its status
    assert (code, lines[4:]) == (1, [f"hpclaunch: {folder}/files cannot be read"])
    again = hpclaunch(*ASKED, "--dry-run", "--save", str(folder), "--", "true")
    assert (again.returncode, again.stderr.splitlines()) == (
        3,
        [f"hpclaunch: --save {folder}: it is there already", "  name a new folder"],
    )


def test_the_files_take_no_variable_from_the_program(tmp_path: Path) -> None:
    """Those of an outer allocation are unset before srun sets the ranks' own."""
    seen = []
    for form in (("--plain",), ("--save", str(tmp_path / "saved"))):
        script = tmp_path / "saved" / "job.sh" if "--save" in form else tmp_path / "job.sh"
        asked = (*ASKED, "--cpus-per-task", "1", "--dry-run", *form, "--", "env")
        text = hpclaunch(*asked).stdout
        if "--save" not in form:
            script.write_text(text)
        code, lines = sbatch(script)
        assert code == 0, lines
        seen.append({line.partition("=")[0] for line in lines if re.match(r"[A-Z_]+=", line)})
    plain, saved = seen
    assert {"SLURM_CPUS_PER_TASK", "SLURM_CPU_BIND", "SLURM_PROCID"} <= plain
    assert plain - saved == set()


def test_a_saved_script_comes_back_from_a_checkpoint(tmp_path: Path) -> None:
    program = 'echo "run $HPCLAUNCH_RESTART"; [ "$HPCLAUNCH_RESTART" = 1 ] || exit 85'
    folder = tmp_path / "job"
    save = ("--max-restarts", "1", "--dry-run", "--save", str(folder))
    assert hpclaunch(*ASKED, *save, "--", "sh", "-c", program).returncode == 0
    code, lines = sbatch(folder / "job.sh")
    assert (code, [line for line in lines if line.startswith("run")]) == (0, ["run 0", "run 1"])


@pytest.mark.parametrize("plain", [False, True])
def test_a_script_alone_starts_the_ranks_and_says_what_is_missing(plain: bool, tmp_path: Path) -> None:
    options = ("--dry-run", *(("--plain",) if plain else ()))
    script = tmp_path / "job.sh"
    script.write_text(hpclaunch(*ASKED, *NODES, *options, "--", "sh", "-c", RANKS).stdout)
    code, lines = sbatch(script)
    said = [] if plain else ["hpclaunch: no proof, no status: --dry-run --save DIR writes the files"]
    assert (code, sorted(lines)) == (0, sorted([*said, *FOUR]))
    assert not list(tmp_path.glob("hpclaunch-*"))
    found = hpclaunch("lint", "--site", "generic-slurm", str(script))
    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.parametrize(
    "option", ["--max-restarts=1", "--idle-timeout=5m", "--preflight", "--stage=/etc/hostname"]
)
def test_what_needs_files_ends_with_the_way_to_get_them(option: str, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(hpclaunch(*ASKED, option, "--dry-run", "--", "echo", "the program ran").stdout)
    code, lines = sbatch(script)
    assert (code, lines) == (1, [f"hpclaunch: {option.partition('=')[0]} needs --dry-run --save DIR"])
    refused = hpclaunch(*ASKED, option, "--dry-run", "--plain", "--", "true")
    assert (refused.returncode, "needs other files" in refused.stderr) == (3, True)


@pytest.mark.parametrize("words", [("--plain",), ("--save", "x"), ("--dry-run", "--plain", "--save", "x")])
def test_forms_that_make_no_sense_are_refused(words: tuple[str, ...]) -> None:
    assert hpclaunch(*ASKED, *words, "--", "true").returncode == 2


# --- what ranks read from the shared file system -----------------------------------------------------------


def opens_of(slurm: Slurm, ranks: int, folder: Path) -> Counter[str]:
    """How often a job of two nodes opens each of its files, with so many ranks on a node."""
    log = folder / f"opens{ranks}"
    daemons = [(slurm.lab / "pid" / f"slurmd-n{number}.pid").read_text().strip() for number in (1, 2)]
    attach = [word for pid in daemons for word in ("-p", pid)]
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", "-e", "trace=open,openat", "-o", str(log), *attach], stderr=subprocess.PIPE
    )
    while any(psutil.Process(int(pid)).status() == "zombie" or not traced(pid) for pid in daemons):
        time.sleep(0.05)
    # More ranks than cores here, so srun cannot bind each to its own.
    sizes = ("--nodes", "2", "--tasks-per-node", str(ranks), "--cpus-per-task", "1")
    asked = (*ASKED, *sizes, "--binding", "off", "--dry-run")
    assert hpclaunch(*asked, "--save", str(folder / f"job{ranks}"), "--", "true").returncode == 0
    code, lines = sbatch(folder / f"job{ranks}" / "job.sh")
    assert code == 0, lines
    tracer.terminate()
    tracer.wait()
    return Counter(re.findall(rf'"{folder}/job{ranks}/files/([^"]+)"', log.read_text()))


def traced(pid: str) -> bool:
    return "TracerPid:\t0" not in Path(f"/proc/{pid}/status").read_text()


def test_opens_of_our_files_do_not_grow_with_the_ranks(slurm: Slurm, tmp_path: Path) -> None:
    one, eight = (opens_of(slurm, ranks, tmp_path) for ranks in (1, 8))
    assert one == eight
    assert one["sampler.sh"] >= 2  # once on each node, and it says at the end what it saw
    assert one["job_start.sh"] >= 1
    assert all(count <= 4 for count in one.values()), one
