"""Options that differ between ranks, or that one rank refuses, end all ranks soon and with one message."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.train.mpirun import RUNNER, Answer, environment, mpiexec, refusals

pytestmark = pytest.mark.mpi
LIMIT_S = 60


def run_each(*by_rank: Sequence[str | Path], before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """One rank for each list of options; ``before``: what the last rank's command line begins with."""
    command = [mpiexec()]
    for rank, options in enumerate(by_rank):
        prefix = before if rank == len(by_rank) - 1 else ()
        command += [*([":"] if rank else []), "-n", "1", *prefix, *RUNNER, *map(str, options)]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=LIMIT_S
    )


DIFFERENT: list[tuple[tuple[str, ...], int, str]] = [
    (("--checkpoint-dir", "{tmp}/checkpoints"), 3, "rank 2 has --checkpoint-dir (a path), but rank 0 has "),
    (
        ("--log-json", "{tmp}/log"),
        3,
        "rank 2 has --log-json (a path), but rank 0 has --log-json (not given)",
    ),
    (("--timeline", "{tmp}/trace"), 3, "rank 2 has --timeline (a path), but rank 0 has "),
    (("--epochs", "2"), 3, "rank 2 has --epochs 2, but rank 0 has --epochs 1"),
    (("--epochs", "0"), 3, "rank 2: --epochs 0: too small"),
    (("--bogus",), 2, "rank 2: unrecognized arguments: --bogus"),
    (("--epochs", "many"), 2, "rank 2: argument --epochs: invalid int value: 'many'"),
    (("--resume",), 3, "rank 2: --resume without --checkpoint-dir"),
    (("--help",), 2, "--help is on rank 2 only"),
]


@functools.cache
def refused(digits: Path) -> dict[tuple[tuple[str, ...], bool], Answer]:
    """What the ranks answer to each of `DIFFERENT`; with True it is rank 0 that is the odd one."""
    common: tuple[str | Path, ...] = ("--data", digits, "--epochs", "1")
    lines = {}
    for options, _, _ in DIFFERENT:
        odd = (*common, *(option.format(tmp=digits) for option in options))
        lines[options, False], lines[options, True] = (common, common, odd), (odd, common, common)
    return dict(zip(lines, refusals(*lines.values()), strict=True))


@pytest.mark.parametrize("odd_first", [False, True])
@pytest.mark.parametrize(("options", "code", "message"), DIFFERENT)
def test_one_message_and_the_same_exit_status_on_all_ranks(
    digits: Path, options: tuple[str, ...], code: int, message: str, odd_first: bool
) -> None:
    done = refused(digits)[options, odd_first]
    assert done.codes == {code}, done.stderr
    assert done.stderr.count("hpclaunch.train: ") == 1, done.stderr
    assert "epoch" not in done.stdout
    if not odd_first:
        assert done.stderr.count(message) == 1, done.stderr


@pytest.mark.parametrize("odd_first", [False, True])
@pytest.mark.parametrize(("options", "code"), [(("--epochs", "2"), 3), (("--bogus",), 2)])
def test_ranks_that_differ_end_the_launcher_with_their_exit_status(
    digits: Path, options: tuple[str, ...], code: int, odd_first: bool
) -> None:
    common: tuple[str | Path, ...] = ("--data", digits, "--epochs", "1")
    odd = (*common, *options)
    done = run_each(odd, common, common) if odd_first else run_each(common, common, odd)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("hpclaunch.train: ") == 1, done.stderr


@pytest.mark.parametrize(
    "variable", ["HPCLAUNCH_RESULT_FILE={tmp}/result.json", "HPCLAUNCH_TASKS=2", "HPCLAUNCH_JOB_FOLDER={tmp}"]
)
def test_a_variable_that_one_rank_alone_has_hangs_no_rank(
    digits: Path, tmp_path: Path, variable: str
) -> None:
    options = ("--data", digits, "--epochs", "1")
    done = run_each(options, options, before=("env", variable.format(tmp=tmp_path)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 1/1 done") == 1


def test_ranks_may_write_checkpoints_to_paths_of_their_own(digits: Path, tmp_path: Path) -> None:
    options = ("--data", digits, "--epochs", "1", "--checkpoint-dir")
    done = run_each((*options, tmp_path / "first"), (*options, tmp_path / "second"))
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "first").glob("checkpoint-*.npz"))
    assert not (tmp_path / "second").exists()
