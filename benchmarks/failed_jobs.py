"""How often ``status`` names the right rank, cause and remedy of jobs that hpclaunch started itself.

    python -m benchmarks.failed_jobs [--on local|slurm] [--half open|kept] [--author LETTER] [--wrong]

The programs are those of tests/data/failed_programs, whose README.md says who wrote them and which half is
kept apart. Each is submitted to this machine, or to a Slurm of two nodes (tests/testbed), and the answer of
``hpclaunch status --json`` is compared with what truly happens. Other than ``benchmarks/failures.py``, which
is given a log alone, ``status`` has here what a job keeps: the output and the end of each rank. Programs with
an odd number of ranks are left out on Slurm. --keep: where the jobs stay. Needs HPCLAUNCH_TEST_FRAMEWORKS
(tests/frameworks/build.sh) and HPCLAUNCH_TEST_HOROVOD (tests/horovod/build.sh).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.failures import share
from hpclaunch.failures.failed_ranks import ranks_named
from tests.testbed.cluster import Slurm

PROGRAMS = Path(__file__).parents[1] / "tests" / "data" / "failed_programs"
HPCLAUNCH = [sys.executable, "-m", "hpclaunch"]


class Job(NamedTuple):
    """One submitted program, the truth, and the answer of ``status``."""

    name: str
    truth: dict[str, Any]
    found: dict[str, Any]

    @property
    def failure(self) -> dict[str, Any]:
        return dict(self.found.get("failure") or {})

    @property
    def healthy(self) -> bool:
        return bool(self.truth["kind"] == "healthy")

    @property
    def wanted(self) -> set[str]:
        return set(map(str, self.truth.get("expect", {}).get("rank", ())))

    @property
    def right_rank(self) -> bool:
        """Whether the right rank is named; of several at fault some, or as candidates all of them alone."""
        named = ranks_named(self.failure.get("rank"))
        if len(self.wanted) > 1 and ranks_named(self.failure.get("candidates")) == self.wanted:
            return True
        return bool(named) and named <= self.wanted

    @property
    def names_a_rank(self) -> bool:
        return bool(self.failure.get("rank"))

    @property
    def right_cause(self) -> bool:
        expect = self.truth["expect"]
        return self.failure.get("cause") in (expect["cause"], *(expect.get("also") or ()))

    @property
    def shown(self) -> bool:
        line = self.truth["expect"].get("line")
        return not line or any(line in each for each in self.failure.get("lines", ()))

    @property
    def right_place(self) -> bool:
        where = self.truth["expect"].get("where")
        return not where or (self.failure.get("where") or "").endswith(Path(where).name)


def _tasks(case: Path) -> int:
    return int(yaml.safe_load((case / "case.yaml").read_text())["tasks"])


def run(case: Path, on: str, environment: dict[str, str], scratch: Path) -> Job:
    """Submit one program, wait for its end, and ask for its state."""
    truth = yaml.safe_load((case / "case.yaml").read_text())
    folder = scratch / case.name
    shutil.copytree(case, folder, ignore=shutil.ignore_patterns("case.yaml", "__pycache__"))
    env = {**environment, "XDG_STATE_HOME": str(folder / ".state"), "PWD": str(folder)}
    words = [*HPCLAUNCH, "submit", *place(on, truth), *software(truth), "--", *map(str, truth["command"])]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=900)
    (folder / "submit.txt").write_text(" ".join(words) + "\n" + done.stdout + done.stderr)
    if on == "slurm" and done.returncode == 0:
        waiting = [*HPCLAUNCH, "wait", done.stdout.split()[-1]]
        subprocess.run(waiting, cwd=folder, env=env, capture_output=True, text=True, timeout=900)
    asked = subprocess.run(
        [*HPCLAUNCH, "status", "--json"], cwd=folder, env=env, capture_output=True, text=True
    )
    found = json.loads(asked.stdout) if asked.returncode == 0 and asked.stdout else {}
    (folder / "status.json").write_text(json.dumps(found, indent=1))
    return Job(case.name, truth, found)


def place(on: str, truth: dict[str, Any]) -> list[str]:
    """The options of ``submit`` that choose where a program runs: here, or on two nodes."""
    if on == "local":
        return ["--site", "local", "--tasks", str(truth["tasks"]), "--time", "5m"]
    sizes = ["--nodes", "2", "--tasks-per-node", str(truth["tasks"] // 2), "--gpus-per-task", "0"]
    return ["--site", "generic-slurm", "--no-exclusive", "--time", "5m", *sizes]


def software(truth: dict[str, Any]) -> list[str]:
    """The options that name the framework and bring it to the program."""
    framework = str(truth.get("framework") or "none")
    if framework in ("mpi4py", "none"):
        return ["--framework", framework]
    variable = "HPCLAUNCH_TEST_HOROVOD" if framework == "horovod" else "HPCLAUNCH_TEST_FRAMEWORKS"
    return ["--framework", framework, "--venv", os.environ[variable]]


def table(jobs: list[Job]) -> list[tuple[str, str]]:
    """The rows of the table."""
    failed, healthy = [j for j in jobs if not j.healthy], [j for j in jobs if j.healthy]
    ranked = [j for j in failed if j.wanted]
    untold = [j for j in failed if not j.wanted]
    placed = [j for j in failed if j.truth["expect"].get("where")]
    ended_well = [j for j in failed if j.found.get("state") == "done"]
    return [
        ("right rank", share(sum(j.right_rank for j in ranked), len(ranked))),
        (
            "a wrong rank",
            share(sum(bool(j.failure.get("rank")) and not j.right_rank for j in ranked), len(ranked)),
        ),
        (
            "named a rank where none can be known",
            share(sum(bool(j.failure.get("rank")) for j in untold), len(untold)),
        ),
        ("right cause", share(sum(j.right_cause for j in failed), len(failed))),
        (
            "wrong remedy",
            share(sum(bool(j.failure.get("remedy")) and not j.right_cause for j in failed), len(failed)),
        ),
        ("the line that tells it is shown", share(sum(j.shown for j in failed), len(failed))),
        ("file and line of the program", share(sum(j.right_place for j in placed), len(placed))),
        ("failed, though the job ended with 0", str(len(ended_well))),
        (
            "a failure named in a healthy job",
            share(sum(bool(j.failure.get("cause") or j.failure.get("rank")) for j in healthy), len(healthy)),
        ),
    ]


def show(job: Job) -> None:
    """Print what is not right of one case."""
    said = {
        key: job.failure.get(key) for key in ("rank", "candidates", "cause", "where", "exit_code", "lines")
    }
    wrong = [] if job.healthy else [n for n in ("right_cause", "shown", "right_place") if not getattr(job, n)]
    if not job.healthy and (not job.right_rank if job.wanted else job.names_a_rank):
        wrong.append("right_rank")
    if wrong or (job.healthy and job.failure):
        print(f"\n{job.name}: not {', '.join(wrong) or 'healthy'}; {job.found.get('state')}")
        print(f"  what    {job.truth.get('what')}\n  expect  {job.truth['expect']}\n  found   {said}")


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", choices=("local", "slurm"), default="local")
    parser.add_argument("--half", choices=("open", "kept"), default="kept")
    parser.add_argument("--author", default="")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--wrong", action="store_true", help="show each program that is not right")
    given = parser.parse_args()
    found = (PROGRAMS / given.half).glob(f"{given.author}*/case.yaml")
    cases = sorted(path.parent for path in found)
    cases = [case for case in cases if given.on == "local" or _tasks(case) % 2 == 0]
    scratch = given.keep or Path(tempfile.mkdtemp())
    scratch.mkdir(exist_ok=True, parents=True)
    environment = dict(os.environ)
    cluster = Slurm(MPI="pmix", NODES="2", GPUS="0") if given.on == "slurm" else None
    try:
        if cluster:
            environment |= cluster.start().environment()
        jobs = [run(case, given.on, environment, scratch) for case in cases]
    finally:
        if cluster:
            cluster.stop()
    print(f"| {given.on}, {given.half}: {len(jobs)} programs | |\n|---|---|")
    for name, value in table(jobs):
        print(f"| {name} | {value} |")
    for job in jobs if given.wrong else ():
        show(job)


if __name__ == "__main__":
    main()
