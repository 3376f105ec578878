"""A fake Flux of one node: flux batch, jobs, cancel, run, job id and hostlist, for tests without a Flux.

It really runs the scripts, in the background, and their ranks. Its answers have the form of those in
tests/data/flux; it was never compared with a real Flux. Settings, from the environment:

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
    script = Path(argv[0]).read_text()
    if not script.startswith("#!"):
        fail("flux-batch: ERROR: batch does not appear to start with '#!'")
    parser = argparse.ArgumentParser("flux-batch", add_help=False)
    for option in ("job-name", "bank", "queue", "output", "time-limit"):
        parser.add_argument(f"--{option}")
    for option in ("nodes", "nslots", "cores-per-slot", "gpus-per-slot"):
        parser.add_argument(f"--{option}", type=int)
    parser.add_argument("--exclusive", action="store_true")
    parser.add_argument("--dependency", action="append", default=[])
    words = re.findall(r"^#flux:(.*)$", script.partition("\nset -")[0], re.MULTILINE)
    options = vars(parser.parse_args([word for line in words for word in shlex.split(line, comments=True)]))
    if not options["nodes"] and not options["nslots"]:
        fail("flux-batch: ERROR: Number of slots to allocate must be specified")
    if options["queue"] not in (None, *QUEUES):
        fail(f"flux-batch: ERROR: Invalid queue '{options['queue']}' specified")
    number = time.time_ns() // 1_000_000 % (1 << 39) << 24
    job = {"id": number, "jobid": encoded(number), "options": options, "cwd": os.getcwd(), "script": script}
    save(job, status="DEPEND" if options["dependency"] else "SCHED", t_submit=time.time())
    subprocess.Popen(
        [sys.executable, __file__, "start", str(number)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=(HOME / "runner.log").open("a"),
        start_new_session=True,
    )
    print(job["jobid"])


# -- the background process of one job


def start(argv: list[str]) -> None:
    """Wait until the job may start, run it, and write how it ended."""
    job = load(int(argv[0])) or {}
    cancel = HOME / f"{job['id']}.cancel"
    while (word := dependency(job)) == "wait" and not cancel.exists():
        time.sleep(0.05)
    if cancel.exists():
        save(job, status="CANCELED", returncode=-128, t_inactive=time.time())
        return
    if word == "never":
        exception = {"type": "dependency", "note": "dependency can never be satisfied"}
        save(job, status="FAILED", returncode=1, t_inactive=time.time(), exception=exception)
        return
    script = HOME / f"{job['id']}.script"
    script.write_text(job["script"])
    output = (job["options"]["output"] or "flux-{{id}}.out").replace("{{id}}", job["jobid"])
    environment = {**os.environ, "FLUX_ENCLOSING_ID": job["jobid"], "FLUX_URI": "local:///fake"}
    with Path(job["cwd"], output).open("wb") as file:
        child = subprocess.Popen(
            ["bash", str(script)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=job["cwd"],
            env=environment,
            start_new_session=True,
        )
        job = save(job, status="RUN", t_run=time.time())
        status = watch(child, cancel, float((job["options"]["time_limit"] or "3600s").rstrip("s")))
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    if status:
        code = 143  # Flux' brokers end by SIGTERM
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
            end(child.pid, signal.SIGHUP)
        if status and now - ending > KILL_DELAY_S:
            end(child.pid, signal.SIGKILL)
    end(child.pid, signal.SIGKILL)
    return status


def end(session: int, number: int) -> None:
    """Signal every process of a session."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                os.kill(int(stat.parent.name), number)
        except (OSError, IndexError):
            continue


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
    each = asked.tasks_per_node
    ranks = []
    for rank in range(asked.nodes * each):
        who = {"FLUX_TASK_RANK": str(rank), "FLUX_TASK_LOCAL_ID": str(rank % each)}
        ranks.append(subprocess.Popen(asked.command, env={**os.environ, **who}))
    codes: list[int] = []
    while len(codes) < len(ranks):
        time.sleep(0.02)
        codes = [code for code in (child.poll() for child in ranks) if code is not None]
        if any(codes) and "exit-on-error" in asked.options:
            for child in ranks:
                child.kill()
    first = [code for code in codes if code > 0] or [128 - code for code in codes]
    sys.exit(max(first) if any(codes) else 0)


def job_id(argv: list[str]) -> None:
    """``flux job id --to=dec ID``."""
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
        fail("flux-jobs: ERROR: Unable to connect to Flux: broker socket was not found")
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
        found.append({"urgency": 16, "exception": {"occurred": False}, "dependencies": waits, **shown})
    if len(argv) > 2:
        print(json.dumps({"jobs": found}))
    elif found:
        print(json.dumps(found[0]))
    sys.exit(int(unknown))


def cancel(argv: list[str]) -> None:
    """``flux cancel ID``."""
    job = load(decoded(argv[0]))
    if job is None or job["status"] in OVER:
        fail(f"flux-cancel: ERROR: {encoded(decoded(argv[0]))}: unknown job id")
    (HOME / f"{job['id']}.cancel").touch()


def getattr_(argv: list[str]) -> None:
    """``flux getattr NAME``."""
    if argv != ["hostlist"]:
        fail(f"flux-getattr: ERROR: getattr {argv[0]}: No such file or directory")
    print(os.uname().nodename)


COMMANDS = {
    "getattr": getattr_,
    "batch": batch,
    "start": start,
    "run": run,
    "job": job_id,
    "hostlist": hostlist,
    "jobs": jobs,
    "cancel": cancel,
}

if __name__ == "__main__":
    HOME.mkdir(parents=True, exist_ok=True)
    COMMANDS[sys.argv[1]](sys.argv[2:])
