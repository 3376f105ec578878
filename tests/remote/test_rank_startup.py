"""The start-up file of ranks with --profile: it records steps, runs an existing sitecustomize, and breaks
nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hpclaunch.plan.startup_plan import STACKS_SIGNAL, STARTUP_FILES
from tests.remote.fake_torch import make_fake_torch

REMOTE = Path(__file__).parents[2] / "hpclaunch" / "remote"
STEPS = """
import torch.optim.optimizer as o
first, second = o.SGD(), o.SGD()
for number in range({steps}):
    print("step", number + 1)
    first.step()
    second.step()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the start-up file, and modules that stand in for torch."""
    (tmp_path / "startup").mkdir()
    for name, there in STARTUP_FILES.items():
        shutil.copy(REMOTE / name, tmp_path / "startup" / there)
    make_fake_torch(tmp_path / "fake")
    return tmp_path


def run(folder: Path, code: str, **extra: str) -> subprocess.CompletedProcess[str]:
    paths = [str(folder / "startup"), str(folder / "fake")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "HPCLAUNCH_PROFILE": "2:3",
        "HPCLAUNCH_PROFILE_FOLDER": str(folder / "profile"),
        **extra,
    }
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def traces(folder: Path) -> list[str]:
    return (
        sorted(path.name for path in (folder / "profile").glob("*")) if (folder / "profile").exists() else []
    )


def test_the_steps_of_the_first_optimizer_are_recorded(folder: Path) -> None:
    done = run(folder, STEPS.format(steps=9), RANK="3")
    assert (done.returncode, done.stderr) == (0, "")
    words = done.stdout.replace("\n", " ")
    assert "step 2 profile ['cpu'] start step 3 step 4 step 5 stop step 6" in words
    assert words.count("start") == 1
    assert traces(folder) == ["trace-rank3.json"]


def test_a_step_within_a_step_counts_once(folder: Path) -> None:
    """As Horovod's optimizer, which is of a class made of the program's and calls its step."""
    done = run(folder, STEPS.format(steps=9).replace("first.step()", "first.step(first.step)"))
    words = done.stdout.replace("\n", " ")
    assert "step 2 profile ['cpu'] start step 3 step 4 step 5 stop step 6" in words


def test_a_program_that_ends_while_it_is_recorded_leaves_its_trace(folder: Path) -> None:
    done = run(folder, STEPS.format(steps=3), SLURM_PROCID="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert traces(folder) == ["trace-rank0.json"]


def test_a_program_with_too_few_steps_is_told(folder: Path) -> None:
    done = run(folder, STEPS.format(steps=1))
    assert done.returncode == 0
    assert done.stderr == (
        "hpclaunch: --profile: the program took 1 steps of a torch optimizer; recording begins after 2\n"
    )
    assert traces(folder) == []


@pytest.mark.parametrize("code", ["print(1)", "import torch", "import json, argparse"])
def test_a_program_without_a_hook_runs_as_without_the_file(folder: Path, code: str) -> None:
    done = run(folder, code)
    assert (done.returncode, done.stderr) == (0, "")
    assert traces(folder) == []


def test_what_fails_in_the_profiler_does_not_end_the_program(folder: Path) -> None:
    (folder / "fake" / "torch" / "profiler.py").write_text("raise RuntimeError('no profiler here')")
    done = run(folder, STEPS.format(steps=9))
    assert done.returncode == 0
    assert done.stdout.count("step") == 9
    assert (
        done.stderr == "hpclaunch: --profile: rank 0: RuntimeError: no profiler here; nothing is recorded\n"
    )


def test_an_old_torch_without_the_hook_is_told(folder: Path) -> None:
    (folder / "fake" / "torch" / "optim" / "optimizer.py").write_text(
        "class SGD:\n    def step(self): pass\n"
    )
    done = run(folder, STEPS.format(steps=9))
    assert done.returncode == 0
    assert "this torch has no hook for steps" in done.stderr


def test_an_existing_sitecustomize_still_runs(folder: Path) -> None:
    (folder / "fake" / "sitecustomize.py").write_text("print('mine', __name__, __file__)")
    done = run(folder, "import sys; print(sys.modules['sitecustomize'].__file__)")
    mine, ours = done.stdout.splitlines()
    assert mine == f"mine sitecustomize {folder / 'fake' / 'sitecustomize.py'}"
    assert ours == str(folder / "startup" / "sitecustomize.py")


def test_the_jobs_shell_compiles_the_file_once_and_processes_of_a_rank_have_it_too(folder: Path) -> None:
    """And Python does not ask for its folder again at each import."""
    (folder / "files").mkdir()
    (folder / "startup").rename(folder / "files" / "startup")
    plan = f"HPCLAUNCH_FILES={folder}/files hpclaunch_python={sys.executable} hpclaunch_stacks=50; "
    shell = (
        f'{plan}. "{REMOTE}/startup.sh"; ${{hpclaunch_startup-:}}; ls "{folder}/files/startup/__pycache__"; '
    )
    child = "import sitecustomize, sys; print(sitecustomize.__file__, 'startup' in str(sys.path))"
    rank = f"import subprocess, sys; {child}; subprocess.run([sys.executable, '-c', {child!r}])"
    done = subprocess.run(
        ["bash", "-euc", shell + '"$hpclaunch_python" -c "$1"', "job", rank],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": "/mine"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    *compiled, first, second = done.stdout.splitlines()
    assert sorted(name.partition(".")[0] for name in compiled) == [
        "rank_profile",
        "rank_recorder",
        "sitecustomize",
    ]
    assert first == second == f"{folder}/files/startup/sitecustomize.py False"


def test_a_python_that_reads_no_variables_is_not_touched(folder: Path) -> None:
    words = [
        sys.executable,
        "-I",
        "-c",
        "import sys; print('startup' in str(sys.modules.get('sitecustomize')))",
    ]
    done = subprocess.run(words, env={"PYTHONPATH": str(folder / "startup")}, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_horovods_timeline_is_dynamic_for_torch_and_whole_for_tensorflow(folder: Path) -> None:
    for name in ("torch", "tensorflow"):
        path = folder / "fake" / "horovod" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (folder / "fake" / "horovod" / "__init__.py").write_text("")
    code = "import horovod.{}, os; print(os.environ['HOROVOD_TIMELINE'])"
    assert run(folder, code.format("torch")).stdout.strip() == "DYNAMIC"
    whole = str(folder / "profile" / "horovod-timeline.json")
    tensorflow = run(folder, code.format("tensorflow"))
    assert tensorflow.stdout.strip() == whole
    assert "TensorFlow has no hook for steps: Horovod records the whole run" in tensorflow.stderr
    assert run(folder, code.format("torch"), HOROVOD_TIMELINE="x.json").stdout.strip() == "x.json"


def test_at_its_signal_python_writes_its_stacks_and_the_program_goes_on(folder: Path) -> None:
    (folder / "fake" / "sitecustomize.py").write_text("mine = 1")
    code = """
import os, signal, sitecustomize
links = {number: os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")
         if os.path.exists(f"/proc/self/fd/{number}") or os.path.islink(f"/proc/self/fd/{number}")}
(number,) = [number for number, path in links.items() if "hpclaunch-stacks" in path]
os.kill(os.getpid(), signal.SIGRTMIN + 16)
with open(f"/proc/self/fd/{number}") as file:
    print(file.read())
"""
    done = run(folder, code, HPCLAUNCH_STACKS=str(STACKS_SIGNAL))
    assert (done.returncode, done.stderr) == (0, "")
    assert 'File "<string>", line 6 in <module>' in done.stdout
    assert run(folder, "import faulthandler; print(faulthandler.unregister(50))").stdout == "False\n"
