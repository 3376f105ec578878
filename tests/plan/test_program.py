"""What a command starts, and the framework that its Python file imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpclaunch.plan.program import FoundFramework, PythonTarget, find_framework, python_target
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here


@in_one_test(
    "line, target",
    [
        ("python -Wignore::DeprecationWarning train.py", PythonTarget(file="train.py")),
        ("python train.py --lr 1", PythonTarget(file="train.py")),
        ("/opt/venv/bin/python3.11 -u -W ignore src/train.py -m x", PythonTarget(file="src/train.py")),
        ("python -Xfaulthandler -X dev train.py", PythonTarget(file="train.py")),
        ("python -m pkg.train --lr 1", PythonTarget(module="pkg.train")),
        ("python -um pkg.train", PythonTarget(module="pkg.train")),
        ("python -u -m mpi4py pi.py -n 5", PythonTarget(file="pi.py")),
        ("python -m mpi4py.futures -m pkg.train", PythonTarget(module="pkg.train")),
        ("python -m mpi4py --version", PythonTarget(module="mpi4py")),
        ("python -m mpi4py", PythonTarget(module="mpi4py")),
        ("env A=1 numactl -l python train.py", PythonTarget(file="train.py")),
        ("./train.py --lr 1", PythonTarget(file="./train.py")),
        ("python -c print(1)", PythonTarget(code="print(1)")),
        ("python -", None),
        ("python", None),
        ("bash run.sh", None),
        ("./a.out", None),
    ],
)
def test_what_a_command_starts(line: str, target: PythonTarget | None) -> None:
    assert python_target(tuple(line.split())) == target


@in_one_test(
    "line, files, found",
    [
        ("python t.py", {"t.py": "import os\nimport torch\n"}, ("torch", "t.py, line 2: imports torch")),
        (
            "python t.py",
            {"t.py": "def f():\n    from lightning import Trainer\n"},
            ("torch", "t.py, line 2: imports lightning"),
        ),
        (
            "python t.py",
            {"t.py": "import torch\nimport horovod.torch as hvd\n"},
            ("horovod", "t.py, line 2: imports horovod"),
        ),
        (
            "python t.py",
            {"t.py": "import torch.utils.data\nimport jax\n"},
            ("jax", "t.py, line 2: imports jax"),
        ),
        (
            "python t.py",
            {"t.py": "import torch, deepspeed\n"},
            ("deepspeed", "t.py, line 1: imports deepspeed"),
        ),
        ("python t.py", {"t.py": "from mpi4py import MPI\n"}, ("mpi4py", "t.py, line 1: imports mpi4py")),
        (
            "python t.py",
            {"t.py": "import torch\nfrom mpi4py import MPI\n"},
            ("torch", "t.py, line 1: imports torch", "t.py, line 2: imports mpi4py"),
        ),
        (
            "python t.py",
            {"t.py": "import mpi4py, net\n", "net.py": "import torch\n"},
            ("torch", "net.py, line 1: imports torch", "t.py, line 1: imports mpi4py"),
        ),
        (
            "python t.py",
            {"t.py": "import torch, net\n", "net.py": "import mpi4py\n"},
            ("torch", "t.py, line 1: imports torch", "net.py, line 1: imports mpi4py"),
        ),
        (
            "python src/t.py",
            {"src/t.py": "import net\n", "src/net.py": "import torch\n"},
            ("torch", "src/net.py, line 1: imports torch"),
        ),
        ("python src/t.py", {"src/t.py": "import net\n", "net.py": "import torch\n"}, None),
        (
            "python t.py",
            {
                "t.py": "from lib import net\n",
                "lib/__init__.py": "",
                "lib/net.py": "from .a import b\n",
                "lib/a.py": "import torch",
            },
            ("torch", "lib/a.py, line 1: imports torch"),
        ),
        (
            "python -m lib.t",
            {"lib/t.py": "from .net import x\n", "lib/net.py": "import torch\n"},
            ("torch", "lib/net.py, line 1: imports torch"),
        ),
        (
            "python -m lib",
            {"lib/__main__.py": "import torch\n"},
            ("torch", "lib/__main__.py, line 1: imports torch"),
        ),
        ("python -c import\ttorch", {}, ("torch", "the program after -c, line 1: imports torch")),
        ("python t.py", {"t.py": "import torchmetrics_of_mine, numpy\n"}, None),
        ("python t.py", {"t.py": "import torch ("}, None),
        ("python t.py", {}, None),
        ("bash t.sh", {"t.sh": "import torch"}, None),
    ],
)
def test_the_framework_that_a_program_imports(
    line: str, files: dict[str, str], found: tuple[str, ...] | None
) -> None:
    expected = FoundFramework(**dict(zip(("name", "reason", "mpi"), found, strict=False))) if found else None
    assert find_framework(tuple(line.split(" ")), files.get) == expected


def test_modules_that_import_each_other_come_to_an_end() -> None:
    files = {f"m{n}.py": f"import m{(n + 1) % 200}\n" for n in range(200)} | {"m9.py": "import m10, m0\n"}
    assert find_framework(("python", "m0.py"), files.get) is None


def submit(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return hpclaunch_here("submit", *words, folder=folder)


LUMI = ("--site", "lumi-g", "--account", "project_465000001", "--nodes", "2")


def test_the_choice_and_its_reason_are_said_everywhere(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    dry = submit(*LUMI, "--dry-run", "--", "python", "train.py", folder=tmp_path)
    assert dry.returncode == 0, dry.stderr
    reason = "train.py, line 1: imports torch"
    assert f"hpclaunch: framework torch ({reason}); --framework names another" in dry.stderr
    assert f"# Framework: torch; {reason}.\n" in dry.stdout
    assert "#SBATCH --job-name=train  #" in dry.stdout
    table = submit(*LUMI, "--explain", "--", "python", "train.py", folder=tmp_path).stdout
    (row,) = [line for line in table.splitlines() if line.startswith("framework")]
    assert row.split(None, 2) == ["framework", "torch", f"found: {reason}"]
    named = submit(*LUMI, "--dry-run", "--framework", "none", "--", "python", "train.py", folder=tmp_path)
    assert reason not in named.stdout + named.stderr
    assert "# Framework: none; named in the request.\n" in named.stdout


@pytest.mark.parametrize("named", [(), ("--framework", "torch")])
def test_a_torch_program_that_uses_mpi_gets_the_rules_of_both(named: tuple[str, ...], tmp_path: Path) -> None:
    """It sees its GPUs as torch's programs do; the next test is about the plugin."""
    (tmp_path / "train.py").write_text("import torch\nfrom mpi4py import MPI\n")
    reason = "train.py, line 2: imports mpi4py"
    dry = submit(*LUMI, *named, "--dry-run", "--explain", "--", "python", "train.py", folder=tmp_path)
    assert f"hpclaunch: the program uses MPI, too ({reason}): the launcher must fit its MPI" in dry.stderr
    assert "# Framework: torch; " in dry.stdout
    assert f"# It uses MPI, too: {reason}.\n" in dry.stdout
    assert "export ROCR_VISIBLE_DEVICES=0,1,2,3,4,5,6,7  #" in dry.stdout
    (row,) = [line for line in dry.stderr.splitlines() if line.startswith("mpi4py")]
    assert row.split(None, 3) == ["mpi4py", "used,", "too", f"found: {reason}"]


def test_nothing_known_is_said_too(tmp_path: Path) -> None:
    dry = submit(*LUMI, "--dry-run", "--", "./a.out", folder=tmp_path)
    assert "shows no framework that is known: each rank sees all GPUs" in dry.stderr
    assert "# Framework: not known; --framework names it.\n" in dry.stdout
    shared = submit(*LUMI, "--tasks-per-node", "16", "--dry-run", "--", "./a.out", folder=tmp_path)
    assert "16 ranks per node share 8 GPUs: each rank sees only its own, as number 0" in shared.stderr


REFUSED = {
    "srun": (("srun", "-n", "16", "./a.out", "1"), "srun would start", "-- ./a.out 1"),
    "mpirun": (("mpirun", "-np", "8", "python", "train.py"), "mpirun would start", "-- python train.py"),
    "horovodrun": (
        ("horovodrun", "-np", "8", "python", "train.py"),
        "horovodrun would start",
        "--framework horovod -- python train.py",
    ),
    "one word": (("python train.py --lr 1",), "one word with blanks", "-- python train.py --lr 1"),
    "variable": (
        ("A=1", "python", "train.py"),
        "taken for the name of a program",
        "-- env A=1 python train.py",
    ),
    "operator": (
        ("python", "train.py", ">", "log"),
        "'>' reaches the program",
        "bash -c 'python train.py > log'",
    ),
    "missing": (
        ("python", "nosuch.py"),
        "nosuch.py: there is no such file in",
        "the job runs in that folder",
    ),
    "configuration": (
        ("python", "train.py", "--deepspeed_config", "no.json"),
        "no.json: there is no such file",
        "name the file from there",
    ),
    "another one": (
        ("python", "train.py", "--config=no.yaml"),
        "no.yaml: there is no such file",
        "from there",
    ),
    "program": (("./nosuch",), "./nosuch: there is no such file", "from there"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSED)
def test_what_would_fail_is_refused_before_the_queue(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, message, right = REFUSED[case]
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "a.out").touch()
    dry = submit(*LUMI, "--dry-run", "--", *command, folder=tmp_path)
    assert dry.returncode == 0, dry.stderr
    assert "submitting this job is refused: " in dry.stderr
    assert message in dry.stderr
    assert right in dry.stderr
    assert dry.stdout.startswith("#!")
    answer = submit(*LUMI, "--", *command, folder=tmp_path)
    assert answer.returncode == 3
    assert message in answer.stderr
    assert right in answer.stderr
    assert not list(Path(os.environ["XDG_STATE_HOME"]).glob("hpclaunch/jobs/*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--", "torchrun", "--nnodes", "2", "train.py"),
        ("--tasks-per-node", "1", "--", "accelerate", "launch", "--cpu", "train.py"),
        ("--", "python", "train.py", "--config-name", "no.yaml"),
        ("--", "bash", "-c", "echo torchrun train.py"),
        ("--", "accelerate", "config"),
    ],
)
def test_what_may_work_is_not_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    assert "refused" not in submit(*LUMI, "--dry-run", *words, folder=tmp_path).stderr


def test_a_framework_is_kept_by_the_record(tmp_path: Path) -> None:
    """What was found once holds for a resubmission, also where the file has changed."""
    (tmp_path / "t.py").write_text("import mpi4py\n")
    answer = submit("--site", "local", "--json", "--", sys.executable, "t.py", folder=tmp_path)
    assert answer.returncode in (0, 1), answer.stderr
    (record,) = Path(os.environ["XDG_STATE_HOME"]).glob("hpclaunch/jobs/*/record.json")
    assert json.loads(record.read_text())["request"]["framework"] == "mpi4py"


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (("--container", "nosuch.sif"), "nosuch.sif"),
        (("--container", "{0}/nosuch.sif"), "{0}/nosuch.sif"),
        (("--venv", "nosuch"), "nosuch/bin/activate"),
        (("--venv", "{0}/nosuch"), "{0}/nosuch"),
        (("--container", "{0}/there.sif", "--", "python", "nosuch.py"), "nosuch.py"),
    ],
)
def test_software_that_is_not_there_is_told_before_the_queue(
    words: tuple[str, ...], missing: str, tmp_path: Path
) -> None:
    (tmp_path / "there.sif").touch()
    (tmp_path / "train.py").touch()
    asked = [word.format(tmp_path) for word in words]
    program = () if "--" in asked else ("--", "python", "train.py")
    answer = submit(*LUMI, *asked, *program, folder=tmp_path)
    assert (answer.returncode, answer.stdout) == (3, ""), answer.stderr
    assert f"{missing.format(tmp_path)}: there is no such file" in answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--container", "docker://nvcr.io/nvidia/pytorch:25.06-py3"),
        ("--container", "$SCRATCH/my.sif"),
        ("--container", "/local/of/the/nodes/my.sif"),
        ("--container", "{0}/there.sif", "--container-bind", "/nosuch"),
        ("--venv", "~/nosuch"),
        ("--venv", "/local/of/the/nodes/env"),
    ],
)
def test_what_only_the_nodes_know_is_not_looked_for(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "there.sif").touch()
    asked = [word.format(tmp_path) for word in words]
    dry = submit(*LUMI, *asked, "--dry-run", "--", "python", "/in/the/image.py", folder=tmp_path)
    assert (dry.returncode, "no such file" in dry.stderr) == (0, False), dry.stderr
