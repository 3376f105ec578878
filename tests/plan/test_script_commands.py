"""The commands of a script that a job starts."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from hpclaunch.plan.program import find_framework
from hpclaunch.plan.script_commands import (
    ShellTarget,
    commands_of_script,
    directives_in,
    script_commands,
    shell_target,
)
from tests.in_one_test import in_one_test

SCRIPT = """#!/bin/bash
# torchrun in a comment
cat <<END
torchrun in a document
END
train() {
  if [ -n "$N" ]; then
    for i in 1 2; do NCCL_DEBUG=INFO torchrun --nproc_per_node $N train.py; done
  fi
}
echo "$(which accelerate)"
train
"""


def test_commands_count_in_functions_loops_and_conditions() -> None:
    found = {words[0]: (line, words) for line, words in commands_of_script(SCRIPT)}
    assert set(found) == {"cat", "[", "for", "torchrun", "echo", "train"}
    assert found["torchrun"] == (8, ("torchrun", "--nproc_per_node", "$N", "train.py"))


@given(st.text())
@example("<'")
@example("<\\")
def test_no_text_is_too_strange(text: str) -> None:
    commands = script_commands(("bash", "x"), lambda name: text if name == "x" else None)
    assert all(one.words and one.where.startswith("x, line ") for one in commands)


@in_one_test(
    "line, target",
    [
        ("bash run.sh --lr 1", ShellTarget(file="run.sh")),
        ("bash -euo pipefail run", ShellTarget(file="run")),
        ("nohup /bin/sh -x -- run", ShellTarget(file="run")),
        ("bash -lc TEXT name", ShellTarget(text="TEXT")),
        ("bash --rcfile rc run", ShellTarget(file="run")),
        ("./run.sh", ShellTarget(file="./run.sh")),
        ("source env", ShellTarget(file="env")),
        ("./maybe", ShellTarget(file="./maybe")),
        ("bash -s run", None),
        ("bash", None),
        ("python train.py", None),
        ("./train.py", None),
    ],
)
def test_the_script_that_a_command_starts(line: str, target: ShellTarget | None) -> None:
    assert shell_target(tuple(line.split())) == target


def test_scripts_that_scripts_start_are_read_too() -> None:
    files = {"run.sh": "source env\nbash inner\n./a.out\n", "inner": "\nsrun x\n", "a.out": "\x7fELF\nsrun"}
    found = [(one.where, one.words[0]) for one in script_commands(("bash", "run.sh"), files.get)]
    assert found == [
        ("run.sh, line 1", "source"),
        ("run.sh, line 2", "bash"),
        ("run.sh, line 3", "./a.out"),
        ("inner, line 2", "srun"),
    ]
    assert script_commands(("bash", "a"), {"a": "bash a\n"}.get)  # which comes to an end


@in_one_test(
    "line, text, reason",
    [
        ("./run.sh", "set -e\npython t.py\n", "./run.sh, line 2: t.py, line 1: imports torch"),
        ("bash run", "uv run t.py\n", "run, line 1: t.py, line 1: imports torch"),
        ("./run", "#!/bin/sh\npython t.py\n", "./run, line 2: t.py, line 1: imports torch"),
        ("./run", "python t.py\n", None),
        ("bash run", "python -c 'import torch'\n", None),
        ("bash run", "env -C folder python t.py\n", None),
        ("env -C folder bash run", "python t.py\n", None),
        ("bash run", "python $FILE\n", None),
    ],
)
def test_the_framework_of_a_script(line: str, text: str, reason: str | None) -> None:
    files = {"t.py": "import torch\n", "run": text, "./run": text, "./run.sh": text}
    found = find_framework(tuple(line.split()), files.get)
    assert (found and found.reason) == reason


def test_a_batch_script_is_recognised() -> None:
    files = {"run.sh": "#!/bin/bash\n#SBATCH -N 2\n", "b.sh": "# SBATCH\necho '#PBS'\n"}
    assert directives_in(("bash", "run.sh"), files.get) == "#SBATCH"
    assert directives_in(("bash", "b.sh"), files.get) is None
