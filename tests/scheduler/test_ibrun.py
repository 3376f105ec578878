"""TACC's ibrun: it takes its numbers from the job, and Vista's Slurm gets no request of GPUs."""

from __future__ import annotations

import msgspec
import pytest

from hpclaunch.scheduler.launcher import Launch
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.schema import SiteProfile
from tests.plan.test_golden import TORCH, script_of

LAUNCH = Launch(nodes=2, tasks_per_node=3)


def test_its_words() -> None:
    ibrun = get_scheduler("slurm").launcher("ibrun")
    assert ibrun is not None
    assert ibrun.words(LAUNCH) == ("ibrun",)
    assert ibrun.words(msgspec.structs.replace(LAUNCH, in_allocation=True)) == ("ibrun", "-np", "6")
    assert ibrun.one_per_node(2)[:4] == ("srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1")


def test_no_gpu_is_requested_where_the_site_refuses_it() -> None:
    script = script_of({"site": "vista", "nodes": 2, "command": TORCH, "framework": "torch"})
    header = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    assert not [line for line in header if "--gres" in line or "--gpus" in line or "--mem" in line]
    assert [line for line in header if line.startswith("#SBATCH --ntasks-per-node=1 ")]
    assert "\nibrun " in script


@pytest.mark.parametrize(("suffix", "shown"), [("juwels-booster", True), ("jupiter", False)])
def test_ranks_meet_by_the_name_on_the_fast_network(suffix: str, shown: bool) -> None:
    profile: SiteProfile = load_site(suffix)
    asked = {"site": suffix, "account": "p", "nodes": 2, "command": TORCH, "framework": "torch"}
    lines = script_of(asked).splitlines()
    assert (profile.fabric.name_suffix is not None) == shown
    read = next(number for number, line in enumerate(lines) if line.startswith("read -r MASTER_ADDR"))
    assert lines[read + 1].startswith("MASTER_ADDR+=i  #") == shown
    assert lines[read + 1 + shown].startswith("export MASTER_ADDR MASTER_PORT=")
