"""Modules of profiles: each with its version, and compared with the page of a site's changes."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from hpclaunch.package_data import resource_dir
from hpclaunch.site.module_facts import changed_modules, entries_of, loaded_modules, without_version
from hpclaunch.site.site_documents import validated_site
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here
from tests.profiles import shipped

SITES = sorted(path.stem for path in resource_dir("site_profiles").glob("*.yaml"))
PROFILE = """\
schema: 1
name: ours
description: a machine of ours
scheduler: {kind: slurm, launcher: srun, source: page}
binding: {cpu: none, source: page}
sources: {page: {url: 'https://site.example/software', checked: 2026-11-01}}
changes: [{source: page, last_entry: 2026-03-01}]
software:
  setup: [{text: module load base, reason: the base, source: page}]
  offers:
    torch: {environment: {modules: [torch/2.8.0]}, since: 2026-06-01, source: page}
"""
PAGE = """\
# System updates
## 2026-09-30
- jax is there now.
## June 10, 2026
torch/2.9.0 is the default; pytorch-lightning too.
## 2026-02-01
base was renewed.
"""
HTML = """\
<html><body><h2>30 September 2026</h2><ul><li>jax &amp; more</li></ul>
<h2>10 June 2026</h2><p>torch/2.9.0 is the <b>default</b></p>
<script>var x = "2027-01-01 torch";</script></body></html>
"""


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    file = tmp_path / "ours.yaml"
    file.write_text(PROFILE)
    return file


@in_one_test("site", SITES)
def test_the_modules_of_shipped_profiles_have_a_version_or_a_reason(site: str) -> None:
    assert validated_site(site).errors == ()


def test_a_module_without_version_is_a_mistake(ours: Path) -> None:
    answer = hpclaunch_here("sites", "validate", str(ours), folder=ours.parent)
    assert answer.returncode == 3
    assert "software.setup.0: module base has no version; write base/VERSION" in answer.stderr
    ours.write_text(PROFILE.replace("  offers:", "  unversioned: {base: it has none}\n  offers:"))
    assert hpclaunch_here("sites", "validate", str(ours), folder=ours.parent).returncode == 0


def test_it_is_used_all_the_same(ours: Path) -> None:
    """What `sites validate` names does not keep a person from submitting with a profile of their own."""
    answer = hpclaunch_here("submit", "--site", str(ours), "--dry-run", "--", "./a", folder=ours.parent)
    assert answer.returncode == 0
    assert "module load base" in answer.stdout


@pytest.mark.parametrize("page", [PAGE, HTML])
def test_only_entries_newer_than_what_is_known_count(page: str, ours: Path) -> None:
    (ours.parent / "page").write_text(page)
    words = ("sites", "check", str(ours), "--page", "page", "--json")
    answer = hpclaunch_here(*words, folder=ours.parent)
    assert answer.returncode == 1
    (found,) = json.loads(answer.stdout)["changed"]
    assert (found["module"], found["known"], found["changed"]) == ("torch", "2026-06-01", "2026-06-10")
    assert found["keys"] == ["software.offers.torch"]
    assert "torch/2.9.0 is the default" in found["entry"]


def test_a_page_without_entries_is_refused(ours: Path) -> None:
    (ours.parent / "page").write_text("nothing here\n")
    answer = hpclaunch_here("sites", "check", str(ours), "--page", "page", folder=ours.parent)
    assert answer.returncode == 3
    assert "no entry with a day is in it" in answer.stderr
    two = hpclaunch_here("sites", "check", "lumi-g", "polaris", "--page", "page", folder=ours.parent)
    assert two.returncode == 2


def test_the_change_of_polaris_would_have_been_seen() -> None:
    """Its conda of 2024 was in the profile a year after another one had become the default."""
    page = "## 2025-10-24\nmodule load conda now loads conda/2025-09-25; Horovod is no longer included.\n"
    polaris = shipped("polaris")
    assert changed_modules(polaris, entries_of(page)) == []
    import msgspec

    before = msgspec.structs.replace(polaris, changes=())
    offers = {
        name: msgspec.structs.replace(each, since=None) for name, each in polaris.software.offers.items()
    }
    before = msgspec.structs.replace(
        before, software=msgspec.structs.replace(polaris.software, offers=offers)
    )
    (found,) = changed_modules(before, entries_of(page))
    assert (found.module, found.changed) == ("conda", dt.date(2025, 10, 24))


def test_names_are_whole_words(ours: Path) -> None:
    assert [module.name for module in loaded_modules(shipped("saga"))][:2] == [
        "CMake/3.23.1-GCCcore-11.3.0",
        "Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0",
    ]
    assert list(without_version(shipped("saga"))) == []
