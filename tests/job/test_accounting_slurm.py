"""Slurm with its accounting database: jobs are known when the controller has forgotten them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.refresh import refresh
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from tests.testbed.cluster import Slurm
from tests.testbed.kit import submit

pytestmark = pytest.mark.slurm
HOST, SLURM = LocalHost(), get_scheduler("slurm")
WORK = """
import glob, os, signal, time
memory, until = bytearray(200 << 20), time.monotonic() + 5
while time.monotonic() < until:
    pass
folder = os.environ["HPCLAUNCH_JOB_FOLDER"].encode()
for process in glob.glob("/proc/[0-9]*"):
    try:
        words = open(process + "/cmdline", "rb").read().split(b"\\0")
    except OSError:
        continue
    if folder + b"/files/sampler.sh" in words:
        os.kill(int(process[6:]), signal.SIGKILL)
        print("the sampler is killed")
"""


def hpclaunch(*words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-m", "hpclaunch", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def report(*words: str) -> Any:
    return json.loads(hpclaunch("report", *words, "--json").stdout)


ACCOUNT = "#SBATCH --account=science"


def test_what_the_accounting_knows(
    accounting_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong account is refused before submission; of ended jobs the database alone is left to tell."""
    monkeypatch.setenv("SLURM_CONF", str(accounting_slurm.conf))
    wrong = ("--site", "generic-slurm", "--mpi", "none", "--account", "nosuch", "--", "true")
    refused = subprocess.run(
        [sys.executable, "-m", "hpclaunch", "submit", *wrong], capture_output=True, text=True
    )
    assert refused.returncode == 4
    assert "Invalid account or account/partition combination" in refused.stderr
    store = Store(tmp_path / "state")
    bodies = {"true": ("done", 0), "exit 6": ("failed", 6)}
    records = [submit(store, "slurm", body, tmp_path, ACCOUNT) for body in bodies]
    for record in records:
        left = Path(record.folder) / "exit_status"
        ended = ("squeue", "-h", "-t", "all", "-j", record.scheduler_id or "", "-o", "%T")
        while accounting_slurm.run(*ended).stdout.strip() not in ("COMPLETED", "FAILED"):
            pass
        left.unlink()
    accounting_slurm.forget_jobs()
    for record, expected in zip(records, bodies.values(), strict=True):
        fresh = refresh(store, HOST, record)
        assert (fresh.state, fresh.exit_code) == expected
        assert fresh.started is not None
        assert fresh.ended is not None


@pytest.mark.slow
def test_reports_on_jobs_of_ours_and_of_others(
    accounting_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killing the sampler changes nothing; what it saw until then and what Slurm keeps is in the report."""
    monkeypatch.setenv("SLURM_CONF", str(accounting_slurm.conf))
    monkeypatch.chdir(tmp_path)
    Path("work.py").write_text(WORK)
    size = (
        "--site",
        "generic-slurm",
        "--account",
        "science",
        "--mpi",
        "none",
        "--tasks",
        "1",
        "--time",
        "10m",
    )
    done = hpclaunch("submit", *size, "--sample", "1", "--wait", "--", sys.executable, "work.py")
    assert "the sampler is killed" in done.stdout
    assert "hpclaunch: 1 node, 1 rank: they kept " in done.stdout.splitlines()[-1]
    found = report("last")
    assert (found["state"], found["exit_code"], found["every_s"]) == ("done", 0, 1)
    (node,), (rank,) = found["by_node"], found["by_rank"]
    assert (node["node"], node["cpus"]) == ("n1", os.cpu_count())
    assert 200 << 20 <= rank["memory_peak"] <= 400 << 20
    assert 0 < rank["cpus_busy"] <= 1.5
    times = found["times"]
    assert times["queue_s"] is not None
    assert times["run_s"] >= 4
    assert times["limit_s"] == 600
    assert found["next"][0]["ask"] == "00:05:00"
    assert found["cpu_s"] > 0  # by sacct, which has it after the job's last step
    number = found["scheduler_id"]
    assert report(number, "--site", "generic-slurm")["id"] == found["id"]

    program = (sys.executable, "-c", "x = bytearray(300 << 20); import time; time.sleep(3)")
    Path("job.sh").write_text(
        hpclaunch("submit", *size, "--name", "hand", "--dry-run", "--", *program).stdout
    )
    other = accounting_slurm.run("sbatch", "--parsable", "--wait", "job.sh")
    assert other.returncode == 0, other.stderr
    sites = Path(os.environ["XDG_CONFIG_HOME"], "hpclaunch", "sites")
    sites.mkdir(parents=True)
    here = "schema: 1\nname: here\nextends: generic-slurm\ndescription: d\ndetect: {cluster_names: [lab]}\n"
    Path(sites, "here.yaml").write_text(here)
    found = report(other.stdout.strip())
    assert (found["id"], found["name"], found["state"], found["tasks"]) == (
        other.stdout.strip(),
        "hand",
        "done",
        None,
    )
    assert (found["site"], found["scheduler"]) == ("here", "slurm")
    assert found["times"]["wall_s"] >= 3
    assert (found["by_node"], found["by_rank"]) == ([], [])
    memory = next(one for one in found["next"] if one["what"] == "memory")
    assert memory["ask"] is None
    assert re.search(r"its largest task had 3\d\d MiB", memory["text"])
    assert any("hpclaunch did not submit this job" in text for text in found["unknown"])
