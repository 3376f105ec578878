"""Staging on two nodes of a real Slurm, killed at random moments.

    python -m tests.long_staging [KILLS [SEED]]

The copies stay on the nodes (``--keep-staged``) and the source changes from job to job. A job is killed by
SIGKILL to the process of the staging on one node, by SIGKILL to the reader, or by ``scancel --signal=KILL``
to all its processes. After each, a copy that the next job would take for whole must be a whole one, of this
source or of the one before; and the next job must give its ranks the whole source.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.remote.staging import STAGE, content, make_data_set
from tests.testbed.cluster import Slurm

TARGET = "/dev/shm/stage/data"
SIZES = (30_000_000, 1_000_000, *[3000] * 200)
# What a later job would find whole, and its content, by the node's own view of its storage.
LOOK = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from hpclaunch.remote.stage_copy import Place
from tests.long_staging import digest
whole = Place({TARGET!r}).whole() is not None
print(digest(Path({TARGET!r})) if whole else "none")
"""


def digest(folder: Path) -> str:
    """Of all that is in it."""
    return hashlib.sha256(json.dumps(content(folder)).encode()).hexdigest()


class Trial:
    """A cluster, and a source that changes."""

    def __init__(self, cluster: Slurm, scratch: Path) -> None:
        self.cluster = cluster
        self.source = make_data_set(scratch / "source", SIZES)
        self.environment = {**cluster.environment(), "XDG_STATE_HOME": str(scratch / "state")}
        self.before = digest(self.source)

    def change(self) -> None:
        """Another content under the same names."""
        self.before = digest(self.source)
        (self.source / "run").write_bytes(os.urandom(100))
        (self.source / "train" / "0 of 'all'.bin").write_bytes(os.urandom(SIZES[0]))

    def submit(self, *more: str) -> subprocess.Popen[str]:
        """A job that prints the digest of all that it finds."""
        program = f"import sys; sys.path.insert(0, {str(Path(STAGE).parents[2])!r}); " + (
            "import os; from pathlib import Path; from tests.long_staging import digest; "
            "print('FOUND', digest(Path(os.environ['HPCLAUNCH_STAGED'])))"
        )
        words = ("submit", "--site", "generic-slurm", "--nodes", "2", "--tasks-per-node", "1", "--time", "5m")
        stage = ("--stage", f"{self.source}:{TARGET}", "--keep-staged")
        return subprocess.Popen(
            [sys.executable, "-m", "hpclaunch", *words, *stage, *more, "--", sys.executable, "-c", program],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self) -> float:
        """A job to its end; its seconds. Both ranks must find the source."""
        start = time.monotonic()
        job = self.submit("--wait")
        text, _ = job.communicate(timeout=300)
        found = [line[6:] for line in text.splitlines() if line.startswith("FOUND ")]
        assert job.returncode == 0, text
        assert found == [digest(self.source)] * 2, text
        return time.monotonic() - start

    def killed(self, moments: random.Random, longest_s: float) -> str:
        """Kill a job's staging at a random moment of it."""
        job = self.submit("--wait")
        while not (found := staging_processes()):
            assert job.poll() is None
            time.sleep(0.005)
        time.sleep(moments.uniform(0, longest_s))
        how = moments.choice(["node", "reader", "job"])
        found = staging_processes()
        if how == "job":
            self.cluster.run("scancel", "--signal=KILL", "--full", "--user", str(os.getuid()))
        chosen = next((process for mode, process in found if mode == how), None)
        if chosen is not None:
            chosen.kill()
        time.sleep(moments.uniform(0, 0.3))
        self.cluster.run("scancel", "--user", str(os.getuid()))
        job.communicate(timeout=300)
        while staging_processes():
            time.sleep(0.05)
        return how

    def check_nodes(self) -> int:
        """How many of two nodes have a whole copy; AssertionError where one is not what it should be."""
        words = ("srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--mpi=none")
        done = self.cluster.run(*words, sys.executable, "-c", LOOK)
        assert done.returncode == 0, done.stderr
        whole = [line for line in done.stdout.split() if line != "none"]
        assert all(found in (digest(self.source), self.before) for found in whole)
        return len(whole)


def staging_processes() -> list[tuple[str, psutil.Process]]:
    """All on this machine, each after its mode."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        at = next((at for at, word in enumerate(words) if word.endswith("/stage.py")), None)
        if at and words[0].rpartition("/")[2].startswith("python"):
            found.append((words[at + 1], process))
    return found


def main(kills: int, seed: int) -> None:
    """AssertionError where a half copy was taken for whole."""
    moments = random.Random(seed)
    print(f"{kills} kills, seed {seed}")
    cluster = Slurm(MPI="pmix").start()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            trial = Trial(cluster, Path(scratch))
            usual_s = trial.run()
            print(f"an undisturbed job takes {usual_s:.1f} s", flush=True)
            for kill in range(kills):
                trial.change()
                how = trial.killed(moments, 0.6 * usual_s)
                whole = trial.check_nodes()
                again_s = trial.run()
                print(f"kill {kill + 1} ({how}): {whole} whole copies, next {again_s:.1f} s", flush=True)
    finally:
        cluster.stop()


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    main(*words, *(20, random.randrange(1 << 32))[len(words) :])
