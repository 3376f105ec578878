"""A fake Flux of one node: flux batch, jobs, cancel, run, exec and others, for tests without a Flux.

It really runs the scripts, in the background, and their ranks. It behaves as flux-core 0.88.0 did when its
answers were recorded (tests/data/flux); tests/job/test_real_flux.py runs the same tests on a real one.
Settings, from the environment:

FAKE_FLUX_HOME     folder for its jobs (required)
FAKE_FLUX_SPEED    how many seconds of a time limit pass in one second; 1 by default
FAKE_FLUX_HISTORY  0: ended jobs are forgotten at once
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

sys.path.append(str(Path(__file__).parents[3]))
from tests.fakes.scripts_of_jobs import end, run_later, run_script
from tests.launcher_environments import environments, variables

HOME = Path(os.environ["FAKE_FLUX_HOME"])
KILL_DELAY_S = 1.0
QUEUES = ("batch", "debug")
DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
OVER = ("COMPLETED", "FAILED", "CANCELED", "TIMEOUT")
Job = dict[str, Any]


def fail(text: str) -> NoReturn:
    """Print the reason on stderr and end."""
    sys.stderr.write(text + "\n")
    sys.exit(1)


def encoded(number: int) -> str:
    """Return a job id in base 58, with its ƒ."""
    text = ""
    while number:
        number, digit = divmod(number, 58)
        text = DIGITS[digit] + text
    return "ƒ" + text


def decoded(text: str) -> int:
    """Return the number of a job id, decimal or in base 58 with ƒ or f."""
    if text.isdigit():
        return int(text)
    number = 0
    for digit in text[1:]:
        number = number * 58 + DIGITS.index(digit)
    return number


def load(number: int) -> Job | None:
    """Return a job, None if there is no such."""
    try:
        job: Job = json.loads((HOME / f"{number}.json").read_text())
    except FileNotFoundError:
        return None
    return job


def save(job: Job, **changes: Any) -> Job:
    """Write a job, whole."""
    job = job | changes
    new = HOME / f"{job['id']}.{os.getpid()}"
    new.write_text(json.dumps(job))
    new.rename(HOME / f"{job['id']}.json")
    return job


# -- flux batch


def batch(argv: list[str]) -> None:
    """``flux batch SCRIPT``: start a background process that runs it, print its id."""
    script = Path(argv[-1]).read_text()
    if not script.startswith("#!"):
        fail(f"flux-batch: ERROR: {argv[-1]} does not appear to start with '#!'")
    parser = argparse.ArgumentParser("flux-batch", add_help=False)
    for option in (
        "job-name",
        "bank",
        "queue",
        "output",
        "time-limit",
        "setopt",
        "setattr",
        "env",
        "urgency",
    ):
        parser.add_argument(f"--{option}")
    for option in ("nodes", "nslots", "cores-per-slot", "gpus-per-slot"):
        parser.add_argument(f"--{option}", type=int)
    parser.add_argument("--exclusive", action="store_true")
    parser.add_argument("--dependency", action="append", default=[])
    words = re.findall(r"^#flux:(.*)$", script.partition("\nset -")[0], re.MULTILINE)
    written = [word for line in words for word in shlex.split(line, comments=True)]
    options = vars(parser.parse_args([*written, *argv[:-1]]))
    if not options["nodes"] and not options["nslots"]:
        fail("flux-batch: ERROR: Number of slots to allocate must be specified")
    if options["queue"] not in (None, *QUEUES):
        fail(f"flux-batch: ERROR: '{options['queue']}' is not a valid queue")
    for text in options["dependency"]:
        refuse_dependency(*text.split(":", 1))
    number = time.time_ns() // 1_000_000 % (1 << 39) << 24
    job = {"id": number, "jobid": encoded(number), "options": options, "cwd": os.getcwd(), "script": script}
    job["t_submit"] = time.time()
    if (options["nodes"] or 1) > 1:
        note = f"unsatisfiable request: need {options['nodes']} exclusive node(s), only 1 eligible"
        fails(job, "alloc", note)
        print(job["jobid"])
        return
    save(job, status="DEPEND" if options["dependency"] else "SCHED")
    run_later(__file__, "start", str(number), HOME / "runner.log")
    print(job["jobid"])


def refuse_dependency(kind: str, other: str) -> None:
    """End where the job can never start: it is refused, and does not wait."""
    before = load(decoded(other))
    if before is None:
        fail(f"flux-batch: ERROR: dependency: {kind}: id {other}: job not found")
    if kind == "afterok" and before["status"] in OVER and before["status"] != "COMPLETED":
        fail(f"flux-batch: ERROR: dependency: {kind}: job {before['jobid']} failed or was canceled")


def fails(job: Job, kind: str, note: str) -> None:
    """Save a job that ended without having run."""
    exception = {"occurred": True, "severity": 0, "type": kind, "note": note}
    save(job, status="FAILED", returncode=1, t_inactive=time.time(), exception=exception)


# -- the background process of one job


def start(argv: list[str]) -> None:
    """Wait until the job may start, run it, and write how it ended."""
    job = load(int(argv[0])) or {}
    cancel = HOME / f"{job['id']}.cancel"
    release = HOME / f"{job['id']}.release"
    held = job["options"]["urgency"] == "0"
    while ((word := dependency(job)) == "wait" or (held and not release.exists())) and not cancel.exists():
        time.sleep(0.05)
    if cancel.exists():
        save(job, status="CANCELED", returncode=-128, t_inactive=time.time())
        return
    if word == "never":
        other = job["options"]["dependency"][0].partition(":")[2]
        words = f"after-success={encoded(decoded(other))}"
        fails(job, "dependency", f"dependency {words} can never be satisfied")
        return
    script = HOME / f"{job['id']}.script"
    script.write_text(job["script"])
    output = (job["options"]["output"] or "flux-{{id}}.out").replace("{{id}}", job["jobid"])
    mode = "ab" if job["options"]["setopt"] == "output.mode=append" else "wb"
    environment = {**os.environ, "FLUX_ENCLOSING_ID": job["jobid"], "FLUX_URI": "local:///fake"}
    with Path(job["cwd"], output).open(mode) as file:
        child = run_script(script, file, job["cwd"], environment)
        job = save(job, status="RUN", t_run=time.time())
        status = watch(child, cancel, float((job["options"]["time_limit"] or "3600s").rstrip("s")))
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    if code:
        when = "Nov 23 04:05:32.843668 UTC 2026"
        with Path(job["cwd"], output).open("ab") as file:
            file.write(f"{when} broker.err[0]: rc2.0: /tmp/script Exited (rc={code}) 0.0s\n".encode())
    if status:
        code = 143 if status == "CANCELED" else 142  # Flux' brokers end by SIGTERM and SIGALRM
    status = status or ("FAILED" if code else "COMPLETED")
    save(job, status=status, returncode=code, t_inactive=time.time())


def dependency(job: Job) -> str:
    """Return whether the jobs that this one waits for let it go: go, wait or never."""
    for text in job["options"]["dependency"]:
        kind, _, other = text.partition(":")
        before = load(decoded(other))
        if before is None:
            return "never"
        if before["status"] not in OVER:
            return "wait"
        if kind == "afterok" and before["status"] != "COMPLETED":
            return "never"
    return "go"


def watch(child: subprocess.Popen[bytes], cancel: Path, limit_s: float) -> str | None:
    """Wait for the script; end it when the job is cancelled or out of time. Return the status it has then."""
    begun, status, ending = time.monotonic(), None, 0.0
    speed = float(os.environ.get("FAKE_FLUX_SPEED", "1"))
    while child.poll() is None:
        time.sleep(0.02)
        now = time.monotonic()
        if status is None and (cancel.exists() or (now - begun) * speed > limit_s):
            status, ending = "CANCELED" if cancel.exists() else "TIMEOUT", now
            end(child.pid, signal.SIGTERM if status == "CANCELED" else signal.SIGALRM)
            end(child.pid, signal.SIGHUP)
        if status and now - ending > KILL_DELAY_S:
            end(child.pid, signal.SIGKILL)
    end(child.pid, signal.SIGKILL)
    return status


# -- inside a job


def run(argv: list[str]) -> None:
    """``flux run --nodes=N --tasks-per-node=P ... COMMAND``: start the ranks and end as the worst of them."""
    parser = argparse.ArgumentParser("flux-run", add_help=False)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--tasks-per-node", type=int)
    parser.add_argument("--exclusive", action="store_true")
    parser.add_argument("-o", dest="options", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args(argv)
    (HOME / "flux-run.log").open("a").write(" ".join(asked.options) + "\n")
    number = time.time_ns() // 1_000_000 % (1 << 20) << 24
    os.environ["FLUX_JOB_ID"] = encoded(number)
    each, cpus = asked.tasks_per_node, sorted(os.sched_getaffinity(0))
    ranks = []
    (recorded,) = (one for one in environments("flux") if one["site"] == "flux-core")
    for rank in range(asked.nodes * each):
        who = variables(recorded, rank, nodes=asked.nodes, each=each)
        if "cpu-affinity=per-task" in asked.options:
            share = cpus[rank % each * len(cpus) // each : (rank % each + 1) * len(cpus) // each]
            os.sched_setaffinity(0, share or cpus)
        command = ["setsid", *asked.command]
        ranks.append(
            subprocess.Popen(
                command, env={**os.environ, **who}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        )
    os.sched_setaffinity(0, cpus)
    sys.exit(follow(ranks, number, on_error="exit-on-error" in asked.options))


class Shell:
    """What a shell of Flux has read of its ranks and not passed on yet: it is lost where the shell ends."""

    def __init__(self, ranks: list[subprocess.Popen[bytes]]) -> None:
        """Read without waiting."""
        self.kept: list[tuple[float, bytes]] = []
        self.pipes = [child.stdout for child in ranks if child.stdout]
        for pipe in self.pipes:
            os.set_blocking(pipe.fileno(), False)

    def pass_on(self, delay_s: float) -> None:
        """Read what is there, write what is older than that."""
        for pipe in self.pipes:
            if data := pipe.read():
                self.kept.append((time.monotonic(), data))
        while self.kept and time.monotonic() - self.kept[0][0] >= delay_s:
            os.write(1, self.kept.pop(0)[1])


def follow(ranks: list[subprocess.Popen[bytes]], number: int, *, on_error: bool) -> int:
    """Wait for the ranks, ending all where the first one that ends has failed; return the exit code."""

    def forward(signum: int, _: object) -> None:
        for child in ranks:
            if child.poll() is None:
                os.killpg(child.pid, signum)

    for signum in (signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(signum, forward)
    shell, raised, first = Shell(ranks), HOME / f"{number}.raised", None
    while any(child.poll() is None for child in ranks):
        time.sleep(0.02)
        shell.pass_on(0.3)
        first = first or next(((n, child) for n, child in enumerate(ranks) if child.poll() is not None), None)
        if first and first[1].returncode and on_error:
            shell.kept.clear()
            words = (
                f"bash: task rank {first[0]} on host {os.uname().nodename} failed ({disposition(first[1])})"
            )
            print(
                f"0.105s: flux-shell[0]: FATAL: task-exit: {words} and exit-on-error is set", file=sys.stderr
            )
            report(number, f"{words} and exit-on-error is set")
            return kill_all(ranks, exit_code(first[1]))
        if raised.exists():
            report(number, raised.read_text())
            kill_all(ranks, 0)
    shell.pass_on(0.0)
    worst = max(exit_code(child) for child in ranks)
    if worst:
        ended = signal.strsignal(worst - 128) if worst > 128 else f"exited with exit code {worst}"
        print(f"flux-job: task(s) {ended}", file=sys.stderr)
    return worst


def report(number: int, words: str) -> None:
    """Print the exception of the job, as those who follow it see it."""
    print(
        f"0.104s: job.exception {encoded(number)} type=exec severity=0 {words}", file=sys.stderr, flush=True
    )


def disposition(child: subprocess.Popen[bytes]) -> str:
    """Return how a rank ended."""
    code = child.returncode
    return f"Exit {code}" if code >= 0 else signal.strsignal(-code) or str(code)


def exit_code(child: subprocess.Popen[bytes]) -> int:
    """Return the exit code, 128+N for signal N."""
    return child.wait() if child.wait() >= 0 else 128 - child.wait()


def kill_all(ranks: list[subprocess.Popen[bytes]], code: int) -> int:
    """End all ranks and return the code."""
    for child in ranks:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGTERM)
    if code:
        print(f"flux-job: task(s) exited with exit code {code}", file=sys.stderr)
    return code


def execute(argv: list[str]) -> None:
    """``flux exec --noinput [--jobid=ID] COMMAND``: run it on the one node."""
    if argv[:1] != ["--noinput"]:
        fail(f"flux-exec: this fake does not know {argv}")
    command = argv[1:]
    if command[0].startswith("--jobid="):
        text = command.pop(0).partition("=")[2]
        job = load(decoded(text))
        if job is None or job["status"] != "RUN":
            fail(
                f"flux-exec: job {text} is not currently running"
                if job
                else f"flux-exec: job {text} not found"
            )
    os.execvp(command[0], command)


def getattr_(argv: list[str]) -> None:
    """``flux getattr NAME``."""
    if (HOME / "down").exists():
        fail("flux-getattr: flux_open: No such file or directory")
    known = {"parent-uri": "local:///fake", "hostlist": os.uname().nodename, "jobid-path": "/"}
    if argv[0] not in known:
        fail(f"flux-getattr: {argv[0]}: No such file or directory")
    print(known[argv[0]])


def job_id(argv: list[str]) -> None:
    """``flux job id --to=dec ID`` and ``flux job raise --severity=0 --type=exec ID WORDS``."""
    if argv[0] == "urgency" and argv[2:] == ["default"]:
        (HOME / f"{decoded(argv[1])}.release").touch()
        return
    if argv[0] == "info" and argv[2:] == ["jobspec"]:
        job = load(decoded(argv[1])) or {}
        print(json.dumps({"attributes": {"system": {"files": {"script": {"data": job["script"]}}}}}))
        return
    if argv[:3] == ["raise", "--severity=0", "--type=exec"]:
        (HOME / f"{decoded(argv[3])}.raised").write_text(argv[4])
        return
    if argv[:2] != ["id", "--to=dec"]:
        fail(f"flux-job: this fake does not know {argv}")
    print(decoded(argv[2]))


def hostlist(argv: list[str]) -> None:
    """``flux hostlist --expand --delimiter='\\n' instance``."""
    if argv != ["--expand", "--delimiter=\\n", "instance"]:
        fail(f"flux-hostlist: this fake does not know {argv}")
    print(os.uname().nodename)


# -- flux jobs and flux cancel


def jobs(argv: list[str]) -> None:
    """``flux jobs --json ID...``."""
    if (HOME / "down").exists():
        fail("flux-jobs: ERROR: Unable to connect to Flux: broker socket /run/flux/local was not found")
    if argv[-3:] == ["-n", "-o", "{id.f58plain}"]:
        numbers = sorted((int(path.stem) for path in HOME.glob("*.json")), reverse=True)
        listed = (load(number) for number in numbers)
        pending = ("SCHED", "DEPEND")
        which = {("--filter=pending",): pending, (): (*pending, "RUN"), ("-a",): (*pending, "RUN", *OVER)}
        if tuple(argv[:-3]) not in which:
            fail(f"usage: flux-jobs: this fake does not know {argv}")
        states = which[tuple(argv[:-3])]
        ids = ["f" + job["jobid"][1:] for job in listed if job and job["status"] in states]
        print("".join(f"{text}\n" for text in ids), end="")
        return
    found, unknown = [], False
    for text in argv[1:]:
        job = load(decoded(text))
        if job is None or (os.environ.get("FAKE_FLUX_HISTORY") == "0" and job["status"] in OVER):
            sys.stderr.write(f"JobID {text} unknown\n")
            unknown = True
            continue
        hidden = ("options", "script")
        shown = {name: value for name, value in job.items() if name not in hidden}
        waits = job["options"]["dependency"] if job["status"] == "DEPEND" else []
        found.append(
            {"urgency": 16, "nnodes": 1, "exception": {"occurred": False}, "dependencies": waits, **shown}
        )
    if len(argv) > 2:
        print(json.dumps({"jobs": found}))
    elif found:
        print(json.dumps(found[0]))
    sys.exit(int(unknown))


def cancel(argv: list[str]) -> None:
    """``flux cancel ID...``."""
    code = 0
    for text in argv:
        job = load(decoded(text))
        if job is None or job["status"] in OVER:
            why = "unknown job id" if job is None else "job is inactive"
            sys.stderr.write(f"flux-cancel: ERROR: {encoded(decoded(text))}: {why}\n")
            code = 1
        else:
            (HOME / f"{job['id']}.cancel").touch()
    sys.exit(code)


COMMANDS = {
    "batch": batch,
    "start": start,
    "run": run,
    "exec": execute,
    "getattr": getattr_,
    "job": job_id,
    "hostlist": hostlist,
    "jobs": jobs,
    "cancel": cancel,
}

if __name__ == "__main__":
    HOME.mkdir(parents=True, exist_ok=True)
    COMMANDS[sys.argv[1]](sys.argv[2:])
