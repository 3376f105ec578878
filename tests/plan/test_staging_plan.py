"""What is staged and where, as the request says it."""

from __future__ import annotations

from typing import Literal

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.plan.preflight_plan import plan_staging, split_item
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.site.load_profile import load_site
from tests.in_one_test import in_one_test

SUM = "0123456789abcdef" * 4


def request(*stage: str, keep: bool = False, links: Literal["refuse", "keep"] = "refuse") -> JobRequest:
    command = Command(argv=("true",))
    return JobRequest(site="x", command=command, stage=stage, keep_staged=keep, stage_links=links)


@in_one_test(
    "text, source, target",
    [
        ("/data/train", "/data/train", "train"),
        ("/data/train/", "/data/train/", "train"),
        ("data/train.tar", "data/train.tar", "train"),
        ("x.tar.gz", "x.tar.gz", "x"),
        ("x.tar:x.tar", "x.tar", "x.tar"),
        ("env.sqsh", "env.sqsh", "env.sqsh"),
        ("/a/b:/local/c", "/a/b", "/local/c"),
        ("/a/b:c/d", "/a/b", "c/d"),
        ("/a:b:/c", "/a:b", "/c"),
        (f"a/x.tar.zst#sha256={SUM}", f"a/x.tar.zst#sha256={SUM}", "x"),
        (f"x#sha256={SUM}:/c", f"x#sha256={SUM}", "/c"),
    ],
)
def test_an_item_is_a_source_and_perhaps_a_target(text: str, source: str, target: str) -> None:
    assert split_item(text) == (source, target)


@in_one_test(
    "text", ["", ":", "/", ":x", "/a:..", "/a:../b", "/a:/", "/a:.", "/a#sha256=12", f"/a#sha256={'g' * 64}"]
)
def test_an_item_without_a_place_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="--stage"):
        split_item(text)


def test_two_sources_with_one_target_are_refused() -> None:
    with pytest.raises(BadInputError, match="two sources have the same target"):
        plan_staging(request("/a/x", "/b/x.tar"), load_site("generic-slurm"), 2)


def test_keeping_nothing_is_refused() -> None:
    with pytest.raises(BadInputError, match="--keep-staged without --stage"):
        plan_staging(request(keep=True), load_site("generic-slurm"), 2)
    with pytest.raises(BadInputError, match="--stage-links keep without --stage"):
        plan_staging(request(links="keep"), load_site("generic-slurm"), 2)
    assert plan_staging(request(), load_site("generic-slurm"), 2) is None


@in_one_test(
    "site, keep, afterwards, root",
    [
        ("generic-slurm", False, "stay", '"${TMPDIR:-/tmp}"'),
        ("generic-slurm", True, "keep", '"${TMPDIR:-/tmp}"'),
        ("polaris", False, "leave", "/local/scratch"),
        ("local", False, "here", '"${TMPDIR:-/tmp}"'),
    ],
)
def test_the_copies_are_removed_by_what_can_still_run_when_a_job_is_cancelled(
    site: str, keep: bool, afterwards: str, root: str
) -> None:
    """Slurm starts nothing more in a cancelled job, so a process on each node waits for that."""
    staging = plan_staging(request("/data", keep=keep), load_site(site), 2)
    assert staging is not None
    assert (staging.afterwards, staging.root) == (afterwards, root)
    assert bool(staging.launch) == (site != "local")
