"""A rank that prints 20 MB and fails: whatever its launcher drops, ``hpclaunch status`` has its last words.

    python -m tests.long_last_words [TRIALS]

It runs on this machine under mpiexec, and on a real Slurm under srun as it is and under an srun that drops
all of stderr (``--error=none``). The exit status is 1 where one job's failure is not the rank's own. How
often the log lacks the line is printed, too; also without the copy, to compare with.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.conftest import MPI_VARIABLES
from tests.testbed.cluster import Slurm

LINE = "ModuleNotFoundError: No module named 'horovod'"
PROGRAM = f"""
if [ "$RANK" = 1 ]; then yes 'step ...' | head -c 20000000; echo; echo "{LINE}" >&2; exit 3; fi
exec sleep 600
"""


def failure(environment: dict[str, str], *options: str) -> tuple[dict[str, Any], bool]:
    """Return what status shows of one job's failure, and whether its log has the line."""
    command = [sys.executable, "-m", "hpclaunch"]
    job = ("submit", *options, "--tasks", "2", "--wait", "--", "bash", "-c", PROGRAM)
    subprocess.run([*command, *job], env=environment, capture_output=True, check=False)
    answer = subprocess.run([*command, "status", "--json"], env=environment, capture_output=True, check=True)
    facts = json.loads(answer.stdout)
    return facts["failure"] or {}, LINE in Path(facts["log"]).read_text()


def main() -> None:
    """Try each launcher, and count."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    on_slurm = ("--site", "generic-slurm", "--nodes", "1", "--time", "5m", "--mpi", "none", "--no-test-only")
    kinds = {
        "local": ("--site", "local"),
        "srun": on_slurm,
        "srun --error=none": (*on_slurm, "--env", "SLURM_STDERRMODE=none"),
        "local, no copy": ("--site", "local", "--env", "HPCLAUNCH_LAST_WORDS=off"),
        "srun, no copy": (*on_slurm, "--env", "HPCLAUNCH_LAST_WORDS=off"),
    }
    cluster, wrong = Slurm().start(), 0
    try:
        with tempfile.TemporaryDirectory() as scratch:
            environment = {**cluster.environment(), **MPI_VARIABLES, "XDG_STATE_HOME": scratch}
            path = f"{Path(sys.executable).parent}:{environment['PATH']}"
            for kind, options in kinds.items():
                found = [failure({**environment, "PATH": path}, *options) for _ in range(trials)]
                right = sum(
                    (each["rank"], each["exit_code"], each["lines"]) == ("1", 3, [LINE])
                    for each, _ in found
                    if each
                )
                lost = sum(not in_log for _, in_log in found)
                print(f"{kind}: the rank's own words in {right} of {trials}, lost by the launcher in {lost}")
                wrong += 0 if "no copy" in kind else trials - right
    finally:
        cluster.stop()
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
