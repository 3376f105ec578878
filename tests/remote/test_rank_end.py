"""The end of a rank is kept with its time, and its shell, which waits for the program, stops no signal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

from hpclaunch.failures.failed_ranks import failed_ranks
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.log_extract import read_failures
from tests.scripts import rank_shell

SLURM = ("--site", "generic-slurm", "--partition", "p", "--mpi", "none", "--binding", "off", "--no-sample")


def start(folder: Path, program: str, rank: int = 3) -> subprocess.Popen[str]:
    """Run a rank's shell, as srun does, in a process group of its own."""
    (folder / "ends").mkdir(exist_ok=True)
    own = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": "0", "HPCLAUNCH_JOB_FOLDER": str(folder)}
    words = ["bash", "-c", rank_shell(*SLURM, "--", "true"), "bash", "bash", "-c", program]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        words, stdout=pipe, stderr=pipe, text=True, start_new_session=True, env={**os.environ, **own}
    )


def test_the_end_of_a_rank_is_kept_with_its_time(tmp_path: Path) -> None:
    said = start(tmp_path, "exit 7").communicate()
    node = os.uname().nodename
    assert said == ("", "")
    line = (tmp_path / "ends" / node).read_text()
    assert re.fullmatch(rf"\d{{10}}\.\d{{6}} hpclaunch: task rank 3 on host {node} failed \(Exit 7\)\n", line)


def test_a_program_that_a_signal_ends_has_its_code_and_bash_says_nothing(tmp_path: Path) -> None:
    process = start(tmp_path, "kill -SEGV $$")
    assert process.communicate() == ("", "")
    assert process.returncode == 128 + signal.SIGSEGV
    assert "(Exit 139)" in next((tmp_path / "ends").iterdir()).read_text()


def test_a_job_whose_folder_is_gone_ends_as_its_program_does(tmp_path: Path) -> None:
    process = start(tmp_path, 'rm -r "$HPCLAUNCH_JOB_FOLDER/ends"; exit 5')
    assert (process.communicate(), process.returncode) == (("", ""), 5)


def test_signals_for_the_program_reach_it_and_do_not_end_its_shell(tmp_path: Path) -> None:
    names = ("HUP", "USR1", "USR2", "TERM")
    traps = "; ".join(f"trap 'echo {name}' {name}" for name in names)
    waits = "until [ -e stop ]; do sleep 0.02; done"
    process = start(tmp_path, f'{traps}; cd "$HPCLAUNCH_JOB_FOLDER"; echo ready; {waits}; exit 9')
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    for name in names:
        os.killpg(process.pid, signal.Signals[f"SIG{name}"])
        assert process.stdout.readline() == f"{name}\n"
    (tmp_path / "stop").touch()
    process.communicate()
    assert process.returncode == 9


def test_ends_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text("srun: error: n1: task 0: Exited with exit code 14\n")
    (tmp_path / "ends").mkdir()
    form = "{} hpclaunch: task rank {} on host {} failed (Exit {})\n".format
    (tmp_path / "ends" / "n1").write_text(form("17.200000", 0, "n1", 14) + form("17.050000", 1, "n1", 0))
    (tmp_path / "ends" / "n2").write_text(form("17.100000", 2, "n2", 3))
    log = read_failures(LocalHost(), [str(tmp_path)])[str(tmp_path)]
    assert [(end.rank, end.exit_code) for end in failed_ranks(log.ends)] == [("1", 0), ("2", 3), ("0", 14)]
    assert [end.rank for end in failed_ranks(log.ranks)] == ["2", "0"]  # each once
