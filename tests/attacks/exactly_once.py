"""Submissions that are killed, cut off or crowded: each is made once, and its record has its id."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from tests.attacks.lab import ON_SLURM, Answer, Lab
from tests.testbed.cluster import Sshd, write_ssh

_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def killed_submits(lab: Lab, trials: int) -> None:
    """A signal to the process or to its group at a random moment of the submission."""
    usual_s = _usual_s(lab, lab.environment())
    for number in range(trials):
        name = f"killed{number}"
        process = lab.start("submit", *ON_SLURM, "--name", name, "--no-wait", "--", "true")
        time.sleep(lab.chance.uniform(0, 1.2 * usual_s))
        kill = lab.chance.choice((os.kill, os.killpg))
        hit = process.poll() is None
        if hit:
            kill(process.pid, lab.chance.choice(_SIGNALS))
        answer = _answer(process)
        lab.settled(lab.state)
        # Ctrl-C may come while Python itself starts, before any code of hpclaunch runs.
        problems = ["a traceback"] if re.search(r'^  File ".*/hpclaunch/', answer.err, re.MULTILINE) else []
        lab.trial(problems + lab.twins_and_losses(name), hit=hit)
    _hidden_folders(lab)


def _hidden_folders(lab: Lab) -> None:
    """A submission removes what those before it left half made, ten seconds or more ago."""
    time.sleep(10)
    lab.here("submit", *ON_SLURM, "--no-wait", "--", "true")
    hidden = [path.name for path in (lab.state / "hpclaunch" / "jobs").iterdir() if path.name[0] == "."]
    lab.trial([f"folders left: {hidden}"] if hidden else [], hit=False)


def cut_connections(lab: Lab, trials: int) -> None:
    """The server's end of each connection is killed at a random moment; every second job copies its code."""
    there = lab.scratch / "there"
    server = Sshd(lab.slurm, variables={"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(there)})
    lab.until_closed(server.stop)
    server.start()
    (lab.home / ".ssh").mkdir(mode=0o700)
    (lab.home / ".ssh" / "config").write_text(server.host_block("login"))
    programs = lab.home / ".local" / "bin"  # first on PATH
    programs.mkdir(parents=True)
    write_ssh(programs)
    code = lab.scratch / "code"
    code.mkdir()
    (code / "data").write_bytes(os.urandom(300_000))
    usual_s = _usual_s(lab, lab.environment(), "--host", "login")
    for number in range(trials):
        name = f"cut{number}"
        sync = ("--sync", code) if number % 2 else ()
        words = ("submit", "--host", "login", *sync, *ON_SLURM, "--name", name, "--no-wait", "--", "true")
        process = lab.start(*words)
        time.sleep(lab.chance.uniform(0, 1.2 * usual_s))
        hit = process.poll() is None
        server.break_connections()
        answer = _answer(process)
        lab.settled(lab.state, there)
        codes = (0, 4) if hit else (0,)
        lab.trial(answer.problems("submit", codes) + lab.twins_and_losses(name), hit=hit)


def at_once(lab: Lab, trials: int) -> None:
    """Ten submissions at a time, while other processes list, look and forget."""
    for _ in range(5):
        lab.here("submit", *ON_SLURM, "--name", "old", "--wait", "--", "true")
    over = Event()

    def again(*words: str) -> list[str]:
        problems = []
        while not over.is_set():
            answer = _answer(lab.start(*words))
            # A record may be forgotten between the listing and the look.
            problems += answer.problems(" ".join(words), (0, 1, 3))
        return problems

    with ThreadPoolExecutor() as pool:
        loops = [pool.submit(again, *line.split()) for line in ("jobs", "status last", "forget --all")]
        try:
            for first in range(0, trials, 10):
                _ten_at_once(lab, range(first, min(first + 10, trials)))
        finally:
            over.set()
        lab.trial([problem for loop in loops for problem in loop.result()], hit=False)


def _ten_at_once(lab: Lab, numbers: range) -> None:
    words = ("submit", *ON_SLURM, "--no-wait", "--name")
    started = [lab.start(*words, f"crowd{number}", "--", "sleep", "600") for number in numbers]
    for number, process in zip(numbers, started, strict=True):
        problems = _answer(process).problems("submit", (0,))
        lab.trial(problems + lab.twins_and_losses(f"crowd{number}"))
    lab.slurm.run("scancel", "--user", str(os.getuid()))


def full_disk(lab: Lab, trials: int) -> None:
    """A state folder with 0 to 39 free pages: the id of a job that was accepted is shown."""
    disk = lab.scratch / "disk"
    disk.mkdir()
    mount = 'mount -t tmpfs -o "size=$1" small "$0" && shift && exec "$@"'
    fill = (
        'head -c $((4096 * (512 - $1))) /dev/zero > "$XDG_STATE_HOME/filler" 2> /dev/null; shift; exec "$@"'
    )
    for number in range(trials):
        name = f"disk{number}"
        words = ("submit", *ON_SLURM, "--name", name, "--no-wait", "--", "true")
        command = [
            *("unshare", "--map-current-user", "--keep-caps", "--mount", "sh", "-c", mount, str(disk), "2m"),
            *("sh", "-c", fill, "sh", str(number % 40), *_python(*words)),
        ]
        environment = {**lab.environment(), "XDG_STATE_HOME": str(disk)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=lab.home)
        answer, there = (
            Answer(done.returncode, done.stdout, done.stderr, ""),
            lab.jobs_of_slurm().get(name, []),
        )
        problems = answer.problems("submit")
        if len(there) > 1:
            problems.append(f"{name} was submitted {len(there)} times")
        if there and not (done.returncode == 0 or there[0] in done.stderr):
            problems.append(f"Slurm has {there[0]}, which nobody says: {done.stderr}")
        lab.trial(problems, hit=done.returncode != 0 or "No space" in done.stderr)


_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) { const char *text = getenv("CLOCK_SHIFT_S"); return text ? atol(text) : 0; }
int clock_gettime(clockid_t clock, struct timespec *now) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int status = real(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += shift();
  return status;
}
time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
int gettimeofday(struct timeval *now, void *zone) {
  struct timespec fine;
  clock_gettime(CLOCK_REALTIME, &fine);
  now->tv_sec = fine.tv_sec;
  now->tv_usec = fine.tv_nsec / 1000;
  return 0;
}
"""


def shifted_clocks(lab: Lab, trials: int) -> None:
    """Submissions from machines whose clocks are wrong: states are right, and ``last`` is the newest job."""
    source, shim = lab.scratch / "clock.c", lab.scratch / "clock.so"
    source.write_text(_CLOCK)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"], check=True)
    year_s = 365 * 86_400
    for number in range(trials):
        shift_s = lab.chance.choice((-86_400, 10 * year_s, 3600, -year_s, 0))
        environment = {**lab.environment(), "CLOCK_SHIFT_S": str(shift_s)}
        shimmed = f'LD_PRELOAD="{shim}" exec "$@"'
        # Only hpclaunch has the wrong clock: munge refuses a client whose clock differs.
        programs = lab.scratch / "bin"
        _without_the_shim(programs)
        environment["PATH"] = f"{programs}:{environment['PATH']}"
        name = f"clock{number}"
        words = ("submit", *ON_SLURM, "--name", name, "--wait", "--", "true")
        command = ["sh", "-c", shimmed, "sh", *_python(*words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=lab.home)
        problems = Answer(done.returncode, done.stdout, done.stderr, "").problems("submit", (0,))
        shown = lab.here("status", "last").out
        if name not in shown or "done" not in shown:
            problems.append(f"last after a clock of {shift_s:+} s is not {name}, done: {shown[:200]}")
        lab.trial(problems + lab.twins_and_losses(name), hit=shift_s != 0)


def _without_the_shim(programs: Path) -> None:
    programs.mkdir(exist_ok=True)
    for name in ("sbatch", "squeue", "sacct", "scontrol", "srun", "sinfo", "scancel"):
        file = programs / name
        file.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec /usr/bin/{name} "$@"\n')
        file.chmod(0o755)


def _python(*words: str) -> tuple[str, ...]:

    return (sys.executable, "-m", "hpclaunch", *words)


def _answer(process: subprocess.Popen[str]) -> Answer:
    out, err = process.communicate()
    return Answer(process.returncode, out, err, "")


def _usual_s(lab: Lab, environment: dict[str, str], *more: str) -> float:
    """How long an undisturbed submission takes, the second one."""
    for _ in range(2):
        start = time.monotonic()
        answer = _answer(lab.start("submit", *more, *ON_SLURM, "--no-wait", "--", "true", env=environment))
        assert answer.code == 0, answer.err
    return time.monotonic() - start
