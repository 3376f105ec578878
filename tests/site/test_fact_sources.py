"""The reference page of the machines: each source with the facts that cite it, and what is not known."""

from __future__ import annotations

import runpy
from pathlib import Path

from click.testing import CliRunner

from hpclaunch.cli.sites import command
from hpclaunch.package_data import resource_dir
from hpclaunch.site.fact_sources import SUBJECTS, counted_facts, fact_sources
from hpclaunch.site.load_profile import load_site

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "sites.md"
written = runpy.run_path(str(ROOT / "packaging" / "reference_pages.py"))


def test_the_reference_page_is_fresh() -> None:
    page = written["PAGES"]["sites"]()
    assert PAGE.read_text() == page, (
        "write it again: python packaging/reference_pages.py sites > docs/reference/sites.md"
    )
    assert CliRunner().invoke(command, ["list", "--markdown"]).output == page


def test_every_machine_has_its_section() -> None:
    shipped = [path.stem for path in resource_dir("site_profiles").glob("*.yaml")]
    machines = {name for name in shipped if load_site(name).status != "generic"}
    sections = {
        line.removeprefix("### ") for line in PAGE.read_text().splitlines() if line.startswith("### ")
    }
    kinds = {path.stem for path in resource_dir("site_profiles").glob("nodes/*.yaml")}
    assert kinds
    assert sections == machines | kinds


def test_each_fact_is_named_with_the_source_that_it_cites() -> None:
    facts = fact_sources(load_site("frontier"))
    assert "billing" in facts["guide"]
    assert facts["slurm-version"] == ("scheduler.version",)
    assert "fabric.network" in facts["link-speeds"]
    assert "software.container" in facts["containers"]
    assert "queues" in facts["guide"]  # all cite it: named once


def test_what_a_page_says_cannot_break_the_table(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "schema: 1\nname: mine\ndescription: a\nscheduler: {kind: slurm, launcher: srun, source: s}\n"
        "binding: {cpu: cores, source: s}\n"
        "sources: {s: {url: 'https://a.example/x', checked: 2026-11-22, note: 'a | b <c> *d*'}}\n"
    )
    page = written["machines_page"]({"mine": load_site(str(tmp_path / "mine.yaml"))}, {})
    row = (
        "| [a.example/x](https://a.example/x) | 2026-11-22 | documented: a \\| b \\<c> \\*d\\* |"
        " `binding`, `scheduler` |"
    )
    assert row in page


def test_each_subject_is_known_by_a_day_and_its_evidence_or_unknown() -> None:
    counted = counted_facts(load_site("juwels-booster"))
    assert list(counted.subjects) == list(SUBJECTS)
    assert counted.subjects["queues"] == "2026-11-24c"  # users' scripts
    assert counted.subjects["GPUs"] == "2026-11-24d"
    assert counted.subjects["fabric"] == "2026-11-24dcu"  # speeds of the A100 are general knowledge
    file = resource_dir("site_profiles") / "juwels-booster.yaml"
    assert counted.lines == len(file.read_text().splitlines())
    assert counted_facts(load_site("generic-slurm")).subjects["container"] == "unknown"
    assert counted_facts(load_site("perlmutter")).subjects["charging"] == "unknown"
    frontier = counted_facts(load_site("frontier")).subjects
    assert (frontier["software"][-1], frontier["container"][-1]) == ("d", "c")
