"""Record what the Slurm on PATH answers to hpclaunch's commands, for tests/scheduler/test_slurm_versions.py.

    python -m tests.testbed.record_slurm    # PATH=PREFIX/bin:PREFIX/sbin:$PATH for another than the system's

writes tests/data/slurm/answers-VERSION.json. It takes two minutes, as a job must meet its time limit. The
names of folders and of the machine are replaced.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from hpclaunch.scheduler.slurm import SCHEDULER, Srun
from tests.testbed.cluster import Slurm

DATA = Path(__file__).parents[1] / "data" / "slurm"
UNKNOWN = "99999999"
NEVER = "never"
_STEP = "srun -K --mpi=none sh -c"
JOBS: dict[str, tuple[str, str]] = {
    "done": ("", "exit 0"),
    "failed": ("--job-name='a | b'", "exit 3"),
    "killed": ("", "kill -9 $$"),
    "array": ("--array=1-3", "exit $((SLURM_ARRAY_TASK_ID - 1))"),
    "held": ("--hold", "exit 0"),
    "held_array": ("--hold --array=2-4,7%2", "exit 0"),
    "later": ("--begin=now+1hour", "exit 0"),
    "cancelled": ("", "sleep 600"),
    "cancelled_early": ("--hold", "exit 0"),
    "running": ("-N1 -n2", "srun --mpi=none sleep 600"),
    "time_limit": ("-N1 -n2 -t1", f"{_STEP} 'echo at work; sleep 600'"),
    "rank_failed": ("-N1 -n2", f"{_STEP} '[ $SLURM_PROCID = 0 ] || {{ sleep 1; exit 7; }}; sleep 600'"),
    "node_failed": ("-N1 -w n4 --no-requeue --exclusive", "srun --mpi=none sleep 600"),
}
"""Name -> options of sbatch and body of the script."""
_ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}


class Recorder:
    """Jobs on one cluster, and its answers about them."""

    def __init__(self, cluster: Slurm) -> None:
        """Record nothing yet."""
        self._cluster = cluster
        self.jobs: dict[str, str] = {}
        self.answers: dict[str, dict[str, Any]] = {}

    def submit(self, name: str, options: str, body: str) -> None:
        """Submit a job whose output is kept."""
        script = self._cluster.lab / f"{name}.sh"
        script.write_text(f"#!/bin/bash\n#SBATCH --output={self.log(name)} {options}\n{body}\n")
        self.jobs[name] = self.ask(f"submit {name}", *SCHEDULER.submit_command(str(script))).strip()

    def log(self, name: str) -> Path:
        """Return the file with the output of a job."""
        return self._cluster.lab / f"{name}.out"

    def ask(self, scenario: str, *argv: str) -> str:
        """Run a command and keep its answer; return its stdout."""
        env = {**self._cluster.environment(), **SCHEDULER.query_env}
        done = subprocess.run(
            argv, env=env, stdin=subprocess.DEVNULL, text=True, capture_output=True, check=False
        )
        answer = {"argv": [*argv], "exit_code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
        self.answers[scenario] = answer
        return done.stdout

    def wait_for(self, states: set[str], *names: str) -> None:
        """Wait until jobs are in one of the states."""
        numbers = ",".join(self.jobs[name] for name in names)
        query = ("squeue", "-h", "-a", "-r", "-t", "all", "-j", numbers, "-o", "%T")
        while not set(self._cluster.run(*query).stdout.split()) <= states:
            time.sleep(0.2)

    def text(self, version: str) -> str:
        """Return the document, without what names this machine."""
        logs = {name: self.log(name).read_text().splitlines() for name in JOBS if self.log(name).exists()}
        document = {"version": version, "jobs": self.jobs, "answers": self.answers, "logs": logs}
        text = json.dumps(document, indent=1)
        for name, stand_in in ((str(self._cluster.lab), "/lab"), (str(Path.cwd()), "/work")):
            text = text.replace(name, stand_in)
        return re.sub(rf"\b{re.escape(socket.gethostname())}\b", "login1", text) + "\n"


def record(cluster: Slurm) -> Path:
    """Run the jobs, ask about them, and write the file."""
    recorder = Recorder(cluster)
    for name, (options, body) in JOBS.items():
        recorder.submit(name, options, body)
    recorder.wait_for({"RUNNING"}, "cancelled", "running", "node_failed")
    time.sleep(2)  # times are seconds
    for name in ("cancelled", "cancelled_early"):
        recorder.ask(f"cancel {name}", *SCHEDULER.cancel_command(recorder.jobs[name]))
    recorder.ask("cancel unknown", *SCHEDULER.cancel_command(UNKNOWN))
    cluster.run("scontrol", "update", "nodename=n4", "state=down", "reason=trial")
    recorder.wait_for(_ENDED, "failed", "rank_failed", "node_failed", "cancelled", "array")
    recorder.submit(NEVER, f"--dependency=afterok:{recorder.jobs['failed']}", "exit 0")
    recorder.wait_for(_ENDED, "time_limit")
    time.sleep(6)  # the database has it later than the controller
    _ask_about_jobs(recorder)
    _ask_about_the_cluster(recorder)
    version = cluster.run("sbatch", "--version").stdout.split()[-1].partition("-")[0]
    cluster.end_controller()
    for source in ("squeue", "scontrol"):
        recorder.ask(f"{source} without controller", *SCHEDULER.status_commands(source, [UNKNOWN])[0])
    file = DATA / f"answers-{version}.json"
    file.write_text(recorder.text(version))
    return file


def _ask_about_jobs(recorder: Recorder) -> None:
    numbers = list(recorder.jobs.values())
    for source in SCHEDULER.status_sources:
        if source != "scontrol":
            recorder.ask(source, *SCHEDULER.status_commands(source, numbers)[0])
        recorder.ask(f"{source} unknown", *SCHEDULER.status_commands(source, [UNKNOWN])[0])
    for name, number in recorder.jobs.items():
        recorder.ask(f"scontrol {name}", *SCHEDULER.status_commands("scontrol", [number])[0])
    assert SCHEDULER.accounting is not None
    for name in ("failed", "array", "time_limit", "running"):
        recorder.ask(f"accounting {name}", *SCHEDULER.accounting.query(recorder.jobs[name]))
    attach = SCHEDULER.attach
    assert attach
    for name in ("running", "held", "failed"):
        recorder.ask(f"attach {name}", *attach.query(recorder.jobs[name]))
    recorder.ask("find", *SCHEDULER.find)


def _ask_about_the_cluster(recorder: Recorder) -> None:
    recorder.ask("queues", *SCHEDULER.facts_commands["queues"])
    recorder.ask("plugins", *Srun().plugin_list)
    assert SCHEDULER.trial is not None
    trials = {"trial": (), "trial partition": ("-p", "nosuch"), "trial nodes": ("-N", "99")}
    for scenario, words in trials.items():
        recorder.ask(scenario, *SCHEDULER.trial.command, *words, "--wrap", "true")
    recorder.ask("submit refused", "sbatch", "--parsable", "-p", "nosuch", "--wrap", "true")
    recorder.ask("submit wrong", "sbatch", "--parsable", "--nosuchoption", "--wrap", "true")


def main() -> None:
    """Record on a cluster of its own."""
    cluster = Slurm(ACCT="dbd", EXTRA="MessageTimeout=1")
    try:
        print(record(cluster.start()))
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
