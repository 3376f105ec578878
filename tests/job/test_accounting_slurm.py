"""Slurm with its accounting database: jobs are known after the controller has forgotten them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.refresh import refresh
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from tests.testbed.cluster import Slurm
from tests.testbed.kit import submit

pytestmark = pytest.mark.slurm
HOST, SLURM = LocalHost(), get_scheduler("slurm")
ACCOUNT = "#SBATCH --account=science"


def test_what_the_accounting_knows(
    accounting_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong account is refused before submission; of ended jobs the database alone is left to tell."""
    monkeypatch.setenv("SLURM_CONF", str(accounting_slurm.conf))
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    for words in (("account", "science"), ("user", user, "account=science")):
        added = accounting_slurm.run("sacctmgr", "-i", "add", *words)
        assert added.returncode == 0, added.stderr
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
