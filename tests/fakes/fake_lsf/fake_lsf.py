"""A fake LSF: bsub, bjobs, bkill and lsid of one host, for tests of the flow where there is no LSF.

It really runs the scripts, in the background. Its answers have the form that IBM documents for 10.1; it was
never compared with a real LSF. Settings, from the environment:

FAKE_LSF_HOME      folder for its jobs (required)
FAKE_LSF_MINUTE_S  seconds in a minute of -W; 60 by default
FAKE_LSF_HISTORY   0: ended jobs are forgotten at once
FAKE_LSF_OLD       1: bjobs has no reasons, as old versions do
"""

from __future__ import annotations

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

HOME = Path(os.environ["FAKE_LSF_HOME"])
QUEUES = ("normal", "gpu")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)  # what bkill sends, one after the other
SIGNAL_DELAY_S = 1.0
FLAGS, VALUES = ("-x",), ("-J", "-P", "-q", "-R", "-n", "-nnodes", "-gpu", "-W", "-o", "-w")
WAITING, NEVER = "Job dependency condition not satisfied", "Dependency condition invalid or never satisfied"
Job = dict[str, Any]


def fail(text: str) -> NoReturn:
    """Print the reason on stderr and end as LSF's commands do."""
    sys.stderr.write(text + "\n")
    sys.exit(255)


def load(name: str) -> Job:
    """Return a job, ``NUMBER`` or ``NUMBER[INDEX]``."""
    job: Job = json.loads((HOME / f"{name}.json").read_text())
    return job


def save(job: Job, **changes: Any) -> Job:
    """Write a job, whole."""
    job = job | changes
    new = HOME / f"{job['name']}.{os.getpid()}"
    new.write_text(json.dumps(job))
    new.rename(HOME / f"{job['name']}.json")
    return job


def jobs_of(number: str) -> list[Job]:
    """Return the job of that number, or the jobs of that array."""
    names = [path.stem for path in HOME.glob(f"{number}*.json")]
    return [load(name) for name in sorted(names) if name.partition("[")[0] == number]


# -- bsub


def bsub(argv: list[str]) -> None:
    """``bsub < SCRIPT`` or ``bsub SCRIPT``: start a background process that runs it, print its id."""
    script = Path(argv[0]).read_text() if argv else sys.stdin.read()
    options = directives(script)
    if "-nnodes" in options and not argv:
        fail("-nnodes: give the script's name. Job not submitted.")
    if (queue := options.get("-q", QUEUES[0])) not in QUEUES:
        fail(f"{queue}: No such queue. Job not submitted.")
    if not re.fullmatch(r"(\d+:)?\d+", options.get("-W", "1")):
        fail(f"{options['-W']}: Bad run limit. Job not submitted.")
    name, _, rest = options.get("-J", "NONAME").partition("[")
    for number in range(1, 100000):
        try:
            (HOME / f"{number}.taken").touch(exist_ok=False)
        except FileExistsError:
            continue
        break
    job: Job = {
        "number": str(number),
        "job_name": name,
        "options": options,
        "script": script,
        "cwd": os.getcwd(),
        "stat": "PEND",
        "queue": queue,
    }
    for index in indices(rest) if rest else [0]:
        one = save(job, name=f"{number}[{index}]" if index else str(number), index=index)
        run_later(__file__, "run", one["name"], HOME / "runner.log")
    if "BSUB_QUIET" not in os.environ:
        print(f"Job <{number}> is submitted to {'' if '-q' in options else 'default '}queue <{queue}>.")


def directives(script: str) -> dict[str, str]:
    """Return the options of the #BSUB lines; requirements (-R) are put together."""
    options: dict[str, str] = {}
    for line in script.splitlines():
        if not line.startswith("#BSUB "):
            continue
        option, *value = shlex.split(line[6:])
        if option not in (*FLAGS, *VALUES) or len(value) != (option in VALUES):
            fail(f"{line[6:]}: Illegal option. Job not submitted.")
        options[option] = " ".join([options.get(option, ""), *value]).strip()
    return options


def indices(text: str) -> list[int]:
    """Read ``1-9:2,12]%3``; how many run at once is not limited here."""
    found: list[int] = []
    for part in text.partition("]")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if not match or int(match[1]) < 1:
            fail(f"{part}: Bad job array index list. Job not submitted.")
        found += range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1))
    return found


# -- the background process of one job


def run(argv: list[str]) -> None:
    """Wait until the job may start, run it, and write how it ended."""
    job = load(argv[0])
    kill = HOME / f"{job['name']}.kill"
    while (reason := pending(job)) and not kill.exists():
        job = save(job, pend_reason=reason) if reason != job.get("pend_reason") else job
        time.sleep(0.05)
    if kill.exists():
        save(job, stat="EXIT", exit_reason="TERM_OWNER: job killed by owner")
        return
    copy, spool = HOME / f"{job['name']}.script", HOME / f"{job['name']}.out"
    copy.write_text(job["script"])
    with spool.open("wb") as out:
        child = run_script(copy, out, job["cwd"], environment(job))
        job = save(job, stat="RUN")
        reason = watch(child, kill, limit_s(job))
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    ended = f"Exited with exit code {code}." if code else "Successfully completed."
    own = job["options"].get("-o", "").replace("%J", job["number"]).replace("%I", str(job["index"]))
    if own and Path(job["cwd"], own).parent.is_dir():
        with Path(job["cwd"], own).open("ab") as file:
            file.write(spool.read_bytes() + f"\n{reason}\n{ended}\n".encode())
    stat = "EXIT" if code or reason else "DONE"
    save(job, stat=stat, exit_code=code or "-", exit_reason=reason or "-")


def pending(job: Job) -> str | None:
    """Return why the job may not start yet."""
    for condition, number in re.findall(r"(done|ended)\((\d+)\)", job["options"].get("-w", "")):
        stats = {other["stat"] for other in jobs_of(number)}
        if stats - {"DONE", "EXIT"}:
            return WAITING
        if condition == "done" and stats != {"DONE"}:
            return NEVER
    return None


def environment(job: Job) -> dict[str, str]:
    """Return the submitter's environment with what LSF sets."""
    options, host = job["options"], os.uname().nodename
    slots = int(options.get("-n", 1))
    variables = {
        "LSB_JOBID": job["number"],
        "LSB_JOBINDEX": str(job["index"]),
        "LSB_JOBNAME": job["job_name"],
        "LSB_QUEUE": job["queue"],
        "LSB_HOSTS": " ".join([host] * slots),
        "LS_SUBCWD": job["cwd"],
    }
    if slots > 1:
        hosts = HOME / f"{job['name']}.hosts"
        hosts.write_text(f"{host}\n" * slots)
        variables["LSB_DJOB_HOSTFILE"] = str(hosts)
    return {**os.environ, **variables}


def limit_s(job: Job) -> float:
    """Return the run limit in seconds."""
    minutes = 0
    for part in job["options"].get("-W", "60").split(":"):
        minutes = minutes * 60 + int(part)
    return minutes * float(os.environ.get("FAKE_LSF_MINUTE_S", "60"))


def watch(child: subprocess.Popen[bytes], kill: Path, limit: float) -> str:
    """Wait for the script; signal it when it is killed or has run too long. Return LSF's reason."""
    start, reason, signals, last = time.monotonic(), "", list(SIGNALS), 0.0
    while child.poll() is None:
        time.sleep(0.02)
        now = time.monotonic()
        if not reason and kill.exists():
            reason = "TERM_OWNER: job killed by owner"
        if not reason and now - start > limit:
            reason = "TERM_RUNLIMIT: job killed after reaching LSF run time limit"
        if reason and signals and now - last > SIGNAL_DELAY_S:
            end(child.pid, signals.pop(0))
            last = now
    end(child.pid, signal.SIGKILL)
    return reason


# -- bjobs and bkill


def bjobs(argv: list[str]) -> None:
    """``bjobs -a -noheader -o "FIELDS delimiter='X'" [ID...]``."""
    if (HOME / "down").exists():
        fail("Cannot connect to LSF. Please wait ...")
    if argv[:3] != ["-a", "-noheader", "-o"]:
        fail(f"bjobs: this fake does not know {argv}")
    fields, _, delimiter = argv[3].partition(" delimiter=")
    if os.environ.get("FAKE_LSF_OLD") == "1" and "reason" in fields:
        fail("Illegal job field name: exit_reason")
    numbers = argv[4:] or sorted({path.stem for path in HOME.glob("*.taken")})
    for number in numbers:
        jobs = jobs_of(number)
        if os.environ.get("FAKE_LSF_HISTORY") == "0":
            jobs = [job for job in jobs if job["stat"] not in ("DONE", "EXIT")]
        if not jobs:
            sys.stderr.write(f"Job <{number}> is not found\n")
        for job in jobs:
            shown = {
                **job,
                "jobid": number,
                "jobindex": job["index"],
                "output_file": job["options"].get("-o"),
            }
            print(delimiter.strip("'").join(str(shown.get(field) or "-") for field in fields.split()))


def bkill(argv: list[str]) -> None:
    """``bkill ID...``."""
    if (HOME / "down").exists():
        fail("Cannot connect to LSF. Please wait ...")
    for number in argv:
        jobs = jobs_of(number)
        if not jobs:
            fail(f"Job <{number}>: No matching job found")
        if all(job["stat"] in ("DONE", "EXIT") for job in jobs):
            fail(f"Job <{number}>: Job has already finished")
        for job in jobs:
            (HOME / f"{job['name']}.kill").touch()
        print(f"Job <{number}> is being terminated")


def lsid(argv: list[str]) -> None:
    """``lsid``."""
    if (HOME / "down").exists():
        fail("Cannot connect to LSF. Please wait ...")
    print("IBM Spectrum LSF Standard 10.1.0.0\n\nMy cluster name is fakelsf\nMy master name is n1")


if __name__ == "__main__":
    HOME.mkdir(parents=True, exist_ok=True)
    {"bsub": bsub, "bjobs": bjobs, "bkill": bkill, "lsid": lsid, "run": run}[sys.argv[1]](sys.argv[2:])
