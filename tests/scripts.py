"""What tests look for in a job's script and its files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def bare(script: str) -> str:
    """The script without the reasons beside its lines."""
    return re.sub(r"  # .*$", "", script, flags=re.MULTILINE)


def rank_lines(script: str) -> str:
    """The lines of the script that each rank's shell runs."""
    return script.split("<<'HPCLAUNCH_RANK' || :\n")[1].split("HPCLAUNCH_RANK\n")[0]


def rank_shell(*words: str) -> str:
    """The whole text that each rank's shell runs, of ``submit`` with these words."""
    with tempfile.TemporaryDirectory() as scratch:
        save = ("submit", *words[: words.index("--")], "--dry-run", "--save", f"{scratch}/job")
        command = (sys.executable, "-m", "hpclaunch", *save, *words[words.index("--") :])
        script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return rank_lines(script) + rank_end(Path(scratch, "job", "files"))


def rank_end(files: Path) -> str:
    """What the files of a job add to each rank's lines, as ``job_start.sh`` puts it together."""
    # The file may send stdout to the job's log.
    command = 'exec 3>&1; . "$HPCLAUNCH_FILES/job_start.sh"; printf %s "$rank_end" >&3'
    with tempfile.TemporaryDirectory() as job:
        places = {"HPCLAUNCH_FILES": str(files), "HPCLAUNCH_JOB_FOLDER": job}
        environment = {**os.environ, **places}
        done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
