"""The judge that runs scripts (benchmarks/port_run.py): the sandbox, and what it calls a difference."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from benchmarks.port_run import FOLDER, Launch, Ran, compare, judge, run_script, sizes_of
from hpclaunch.port.port_script import Ported, port_script
from tests.in_one_test import in_one_test
from tests.profiles import shipped

SLURM = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 --time=10\n"


def launch(*argv: str, **more: object) -> Launch:
    facts = {
        "kind": "program",
        "cwd": FOLDER,
        "line": 3,
        "ranks": 8,
        "env": {},
        "chain": [],
        "stdin": "",
        "number": 0,
    }
    return msgspec.convert(facts | {"argv": argv} | more, Launch)


def ran(*launches: Launch, files: dict[str, list[int]] | None = None) -> Ran:
    return Ran(launches, files or {}, 0, "", {})


def ported(text: str) -> Ported:
    return port_script(text, None, shipped("olivia"))


def differences(text: str, old: Ran, new: Ran) -> list[tuple[str, str]]:
    return [(one.what, one.by) for one in compare(text, old, new, ported(text))]


def test_the_same_launch_has_no_difference() -> None:
    one = launch("python", "a.py", "--lr", "1", env={"A": "2"})
    text = f"{SLURM}A=2 srun python a.py --lr 1\n"
    assert differences(text, ran(one), ran(one)) == []


@in_one_test(
    "change, what",
    [
        ({"argv": ("python", "a.py", "--lr", "2")}, "'1', not '2'"),
        ({"argv": ("python", "a.py")}, "'--lr 1', not ''"),
        ({"env": {"A": "3"}}, "A='2', not '3'"),
        ({"env": {}}, "A='2', not ''"),
        ({"cwd": "/home/user"}, "folder /home/user/job, not /home/user"),
        ({"ranks": 4}, "8 ranks, not 4"),
        ({"chain": []}, "image b.sif, not "),
        ({"stdin": ""}, "stdin '3', not ''"),
    ],
)
def test_what_differs_is_silent_unless_port_names_it(change: dict[str, object], what: str) -> None:
    chain = [{"kind": "container", "image": "b.sif"}]
    one = launch("python", "a.py", "--lr", "1", env={"A": "2"}, chain=chain, stdin="3")
    text = f"{SLURM}export A=2; srun python a.py --lr 1\n"
    assert differences(text, ran(one), ran(msgspec.structs.replace(one, **change))) == [(what, "")]


def test_a_launch_that_is_named_and_one_that_is_not() -> None:
    text = f"{SLURM}srun ./first\nsrun -n 8 ./second\n"
    old = ran(launch("./first", ranks=4), launch("./second", line=4))
    assert differences(text, old, ran(launch("./first"))) == [
        ("line 4: not started: ./second", "to do"),
        ("4 ranks, not 8", ""),
    ]
    assert differences(text, old, ran(*old.launches)) == []


def test_a_program_by_its_path_is_the_one_of_its_name() -> None:
    text = f"{SLURM}srun $(which julia) /usr/bin/env\n"
    old = ran(launch("/usr/bin/julia", "/usr/bin/env"))
    assert differences(text, old, ran(launch("julia", "/usr/bin/env"))) == []
    assert len(differences(text, old, ran(launch("python", "/usr/bin/env")))) == 1


def test_the_order_of_launches_counts() -> None:
    text = f"{SLURM}srun ./first\nsrun ./second\n"
    first, second = launch("./first"), launch("./second", line=4)
    found = differences(text, ran(first, second), ran(second, first))
    assert [what for what, _ in found] == ["line 3: not started: ./first", "more: ./first"]


def test_a_variable_of_another_name_is_not_named() -> None:
    text = f"{SLURM}export RATE=1\nexport RATES=2\nsource env.sh\nsrun ./a\n"
    old = ran(launch("./a", env={"RATE": "1", "RATES": "2"}, line=6))
    assert differences(text, old, ran(launch("./a", env={"RATES": "2"}))) == [("RATE='1', not ''", "")]


@in_one_test(
    "name, found", [("res.dat", True), ("train.log", False), ("slurm.out", False), ("job.o12", False)]
)
def test_output_in_a_file_that_is_no_log_is_a_difference(name: str, found: bool) -> None:
    text = f"{SLURM}srun ./a > res.dat\n"
    old = ran(launch("./a"), files={f"{FOLDER}/{name}": [0]})
    assert bool(differences(text, old, ran(launch("./a")))) == found


def can_isolate() -> bool:
    words = ["unshare", "--mount", "--net", "--pid", "--fork"]
    words += [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return (
        bool(shutil.which("unshare"))
        and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    )


def run(text: str) -> Ran:
    return run_script(text, sizes_of(text, None))


def programs(text: str) -> list[tuple[tuple[str, ...], int | None]]:
    return [(one.words, one.ranks) for one in run(text).launches]


SANDBOX = [
    ("srun python a.py 'b c'", [(("python", "a.py", "b c"), 8)]),
    ("srun -N1 -n 3 ./a -n 5", [(("./a", "-n", "5"), 3)]),
    ("srun bash -c 'A=1; exec python a.py $A'", [(("python", "a.py", "1"), 8)]),
    ("mpirun -x A=1 --mca btl self -np 6 --bind-to core ./a", [(("./a",), 6)]),
    ("srun singularity exec --nv -B /x:/y i.sif python a.py", [(("python", "a.py"), 8)]),
    (
        "srun -n 1 singularity_wrapper exec deepspeed a.py -x",
        [(("python", "a.py", "--local_rank=0", "-x"), 4)],
    ),
    (
        "srun --ntasks-per-node=1 torchrun --nnodes 2 --nproc_per_node 4 a.py -x",
        [(("python", "a.py", "-x"), 8)],
    ),
    (
        "cat > w.sh <<'E'\n#!/bin/bash\nnumactl -N 0 ./a $1\nE\nchmod +x w.sh; srun ./w.sh 7",
        [(("./a", "7"), 8)],
    ),
    ("for i in 1 2; do srun -n 1 ./a $i; done", [(("./a", "1"), 1), (("./a", "2"), 1)]),
    ("N=$(scontrol show hostnames $SLURM_NODELIST | wc -l)\nunknown-name $N", [(("unknown-name", "2"), 1)]),
    ("cd /project/x; source env.sh; ./deep/er/a < in.txt", [(("./deep/er/a",), 1)]),
    ("echo hi; module load x; nvidia-smi -L | wc -l; ls", []),
    ("set -u; srun ./a $FROM_THE_SHELL", [(("./a", "/home/user/from_the_shell"), 8)]),
]


@pytest.mark.slow
@pytest.mark.skipif(not can_isolate(), reason="needs unshare, and root or user namespaces")
@in_one_test("body, found", SANDBOX)
def test_the_innermost_programs_are_recorded(body: str, found: list[tuple[tuple[str, ...], int]]) -> None:
    assert programs(f"{SLURM}{body}\n") == found


@pytest.mark.slow
@pytest.mark.skipif(not can_isolate(), reason="needs unshare, and root or user namespaces")
def test_nothing_outside_of_the_sandbox_is_touched(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("kept")
    mine.chmod(0o666)
    tmp_path.chmod(0o777)
    body = f"rm -rf {mine} /home /usr/lib/os-release; echo x > {mine}; echo y > /usr/lib/x\n./end"
    done = run(f"{SLURM}{body}\n")
    assert mine.read_text() == "kept"
    assert "Read-only file system" in done.stderr
    assert [one.argv for one in done.launches] == [("./end",)]


@pytest.mark.slow
@pytest.mark.skipif(not can_isolate(), reason="needs unshare, and root or user namespaces")
def test_a_port_is_judged_by_what_runs() -> None:
    text = f"{SLURM}export RATE=0.1\nsrun python a.py --rate $RATE\n"
    assert judge(text, "", shipped("olivia")).verdict == "equal"
    assert judge(text.replace("srun", "cd /x; srun"), "", shipped("olivia")).verdict == "named"
    assert judge(f"{SLURM}echo only\n", "", shipped("olivia")).verdict == "not run"
