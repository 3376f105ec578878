"""No text stops lint: not arbitrary text, not scraps of scripts, not damaged scripts."""

from __future__ import annotations

import random
from pathlib import Path
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpclaunch.lint.lint_script import find_faults, fix
from tests.how_much import examples
from tests.lint.cases import SCRIPTS
from tests.profiles import shipped

pytestmark = pytest.mark.slow

PIECES = (
    "#!/bin/bash", "\n", "\r\n", "\t", " ", "#SBATCH --nodes=2", "#SBATCH --gpus=8 --gpus-per-node=",
    "#PBS -l select=2:", "ncpus=4", "srun ", "mpiexec ", "--cpu-bind=", "mask_cpu:", "map_cpu: ", "0xfe,",
    "${fe}", "$MASK", "MASK=", "$(", ")", "${", "}", "((", "))", "`", "'", '"', "\\\n", "\\", "<<EOF\n",
    "EOF\n", "<<-'E'\n", "tee log", "|", "||", "|&", "&", "2>/dev/null", "&&", ";", ";;", "set -errext ",
    "set -o ", "export ", "MASTER_PORT=", "MASTER_ADDR=", "45678", "$((10000 + x % 100))", "module load ",
    "cuda/12.1 ", "ml ", "-CUDA-11.7.0", "--export=ALL,A=b,c", "if ", "then ", "fi", "case ", "in ", "esac",
    "for ", "do ", "done", "{ ", " }", "f() ", "function ", "[[ ", " ]]", "--time=", "1-00:00:00",
    "--mpi=pmix ", "python train.py", "--hint=", "NCCL_SOCKET_IFNAME=ib0", "\x00", "é", "\u2028", "\udcff",
    "*99999999", "list:0-3:", "=~", ">(", "<(", "a=(", "$'", "#", "%j/", "--output=", "0-9999999999",
    "9" * 400, "#COBALT -n 2", "#BSUB -nnodes 2", "#$ -pe mpi 8", "#OAR -l", "#flux: -N 2", "#SBATCH hetjob",
    "#SBATCH -n=4", "#!/bin/csh\n", "#!/usr/bin/env python\n", "<program>", "<<path>>/x", "torchrun ",
    "--nproc_per_node=8 ", "--nnodes ", "bash -c ", "$SLURM_PROCID", "jsrun -n4 ", "aprun -n 8 -N ",
    "mpiexec -n$N --ppn ", "deepspeed --hostfile hosts ", "wait\n", "export CUDA_VISIBLE_DEVICES=0,1",
    "TOKEN=0123456789abcdef", "# hpclaunch: ignore[*]", "{{ nodes }}", "import os\n", "eb X-CUDA-11.7.0.eb",
)  # fmt: skip
PROFILES = [None, *map(shipped, ("lumi-g", "olivia", "polaris", "generic-slurm"))]
FUZZ = settings(max_examples=examples(70), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def lint_and_fix(text: str, site: int) -> None:
    """Lint, fix, lint again: every finding lies on a line of the text, and a fix changes it."""
    profile = PROFILES[site % len(PROFILES)]
    found = find_faults(text, profile)
    lines = text.count("\n") + 1
    assert all(one.line is None or 1 <= one.line <= lines for one in found)
    assert all(one.message and one.remedy for one in found)
    new, applied = fix(text, found)
    assert (new != text) == bool(applied)
    find_faults(new, profile)


@FUZZ
@given(st.text(max_size=300), st.integers(0, 9))
def test_arbitrary_text(text: str, site: int) -> None:
    lint_and_fix(text, site)


@FUZZ
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.integers(0, 9))
def test_scraps_of_scripts(text: str, site: int) -> None:
    lint_and_fix(text, site)


@FUZZ
@given(st.sampled_from(SCRIPTS), st.integers(0, 9), st.integers(0, 1 << 30))
def test_damaged_scripts(path: Path, site: int, seed: int) -> None:
    lint_and_fix(damaged(path, seed), site)


@pytest.mark.parametrize("options", [" --a", " --a b", " --a=b", " -a 4", " -a", " --a=b -c d"])
def test_many_options_are_read_at_once(options: str) -> None:
    starts = (
        "torchrun",
        "python -m torch.distributed.run",
        "accelerate launch",
        "srun",
        "sbatch",
        "docker run",
    )
    text = "".join(f"{start}{options * 45}\n" for start in (*starts, "mpirun", "deepspeed", "python", "bash"))
    before = process_time()
    find_faults(f"#!/bin/bash\n#SBATCH --time=01:00:00\n{text}")
    assert process_time() - before < 2


LONG = (
    "a/", "path/to/", "conda/", ".../", "( ", "if ", "{ ", "| a ", "\t", "`", "<a>", "a ", "your_a.",
    "<your ", "sed -sed ", "grep '", "bash -c 'cd ",
)  # fmt: skip


@pytest.mark.parametrize("piece", LONG)
@pytest.mark.parametrize("ends", [("", ""), ("#SBATCH -N1\nsrun ", "="), ("x <", "'")])
def test_a_line_of_many_equal_pieces_is_read_at_once(piece: str, ends: tuple[str, str]) -> None:
    before = process_time()
    find_faults(f"#!/bin/bash\n{ends[0]}{piece * (20_000 // len(piece))}{ends[1]}\n")
    assert process_time() - before < 3


@pytest.mark.parametrize(
    ("opens", "closes"), [("( a ", ")"), ("{ a\n", "}\n"), ("( a | ( a ", ") > x "), ("if a\nthen ", "fi\n")]
)
def test_blocks_in_blocks_are_closed_at_once(opens: str, closes: str) -> None:
    before = process_time()
    find_faults(f"#!/bin/bash\n{opens * 5000}{closes * 5000}\n")
    assert process_time() - before < 4


def damaged(path: Path, seed: int) -> str:
    """Return a script that is cut, repeated and has insertions at random places."""
    dice = random.Random(seed)
    text = path.read_bytes().decode()
    for _ in range(dice.randint(1, 6)):
        at, length = dice.randrange(len(text) + 1), dice.choice((0, 1, 3, 40))
        text = text[:at] + dice.choice(("", *PIECES, text[at : at + length] * 2)) + text[at + length :]
    return text
