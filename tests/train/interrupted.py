"""A run that is ended from outside in the middle, once its output has reached a line."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import psutil

from tests.train.mpirun import RUNNER, environment, mpiexec


def runner_ranks(job: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes of ``job`` that are ranks of the runner."""
    below = psutil.Process(job.pid).children(recursive=True)
    return [process for process in below if "hpclaunch.train" in process.cmdline()]


def signalled(
    ranks: int, number: signal.Signals, after: str, *options: str | Path, **extra: str
) -> tuple[int, str]:
    """Send the last rank alone ``number`` once stdout says ``after``; exit code and all output."""
    command = [mpiexec(), "-n", str(ranks), *RUNNER, *map(str, options)]
    with subprocess.Popen(
        command,
        env=environment(PYTHONUNBUFFERED="1", **extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as job:
        assert job.stdout is not None
        text = ""
        while after not in text:
            line = job.stdout.readline()
            assert line, text
            text += line
        runner_ranks(job)[-1].send_signal(number)
        text += job.stdout.read()
    return job.returncode, text


def ended(ranks: int, *options: str | Path) -> tuple[int, str, list[psutil.Process]]:
    """SIGTERM to mpiexec in the second epoch; its exit code, stderr, and the processes that it had."""
    command = [mpiexec(), "-n", str(ranks), *RUNNER, *map(str, options)]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        while "epoch 2/" not in job.stdout.readline():
            pass
        below = psutil.Process(job.pid).children(recursive=True)
        job.send_signal(signal.SIGTERM)
        job.stdout.read()
        errors = job.stderr.read()
    return job.returncode, errors, below


def killed(ranks: int, delay_s: float, *options: str | Path) -> int:
    """SIGKILL every process of a run that long after its first checkpoint; mpiexec's exit code."""
    folder = Path(options[options.index("--checkpoint-dir") + 1])
    known = {path.name for path in folder.glob("*.npz")}
    command = [mpiexec(), "-n", str(ranks), *RUNNER, *map(str, options)]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as job:
        while job.poll() is None and {path.name for path in folder.glob("*.npz")} <= known:
            time.sleep(0.005)
        time.sleep(delay_s)
        below = psutil.Process(job.pid).children(recursive=True) if job.poll() is None else []
        for process in below:
            process.kill()
    return job.returncode
