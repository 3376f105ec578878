"""The scripts that are ported in tests: those of lint's tests, with the machine that each is for."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from hpclaunch.job.job_script import dry_run
from hpclaunch.job.prepare import SubmitMode, prepare
from hpclaunch.lint.batch_script import read_script
from hpclaunch.lint.lint_script import find_faults
from hpclaunch.plan.layout import LaunchPlan
from hpclaunch.plan.settings import JobSettings, Layer
from hpclaunch.port.line_report import LineReport
from hpclaunch.port.port_script import Ported, port_script
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.validate import to_struct
from hpclaunch.site.yaml_tree import parse_tree
from tests.profiles import shipped

DATA = Path(__file__).parent.parent / "data" / "lint"
# In csh, Perl or Python, empty, or without a program: such a text is not read; or it only submits others.
NOT_READ = re.compile(
    r"language-not-read\.(near-tcsh|perl|python)|no-directives\.empty|.*\.near-(file-of-)?csh"
    r"|option-value-refused\.(near-)?of-sbatch|directive-ignored\.near-here-document"
    r"|nothing-started\.near-path-of-data"
    r"|(directive-unknown|option-value-refused)\.here-document|(no-directives|option-value-refused)\.near-here-document"
    r"|option-value-refused\.written-job"
)
SCRIPTS = [path for path in sorted(DATA.glob("*.sh")) if not NOT_READ.match(path.stem)]


def machine_of(text: str) -> SiteProfile | None:
    """The machine that a script of lint's tests is for; None: unknown, or of another scheduler."""
    found = re.search(r"^# site: (\S+)$", text, re.MULTILINE)
    if not found or found[1] == "unknown":
        return None
    site = load_site(str(DATA / found[1])) if found[1].endswith(".yaml") else shipped(found[1])
    return site if read_script(text).kind in (None, site.scheduler.kind) else None


def rendered(ported: Ported) -> tuple[LaunchPlan, str]:
    """The plan and the script of a job file, as ``submit --file --dry-run`` makes them."""
    settings = to_struct(parse_tree(ported.job_file, "job.yaml"), JobSettings)
    layers = [Layer(origin="job file job.yaml", settings=settings)]
    return dry_run(prepare(layers, SubmitMode(here=False)))


def port_and_render(text: str, source: SiteProfile | None, to: str) -> tuple[Ported, str]:
    """A script ported and rendered; what lint reports about the result is an error of the test."""
    target = shipped(to)
    ported = port_script(text, source, target)
    _, script = rendered(ported)
    found = [one for one in find_faults(script, target) if one.severity != "note"]
    if found:  # slips of the program go along
        before = {one.rule for one in find_faults(text, source)}
        found = [one for one in found if one.rule not in before]
    assert found == [], (to, found)
    return ported, script


def lines_of(report: LineReport) -> list[int]:
    """The numbers of all lines in a report."""
    return sorted(one.line for one in (*report.kept, *report.changed, *report.left_out))


def must_be_reported(text: str) -> dict[int, str]:
    """The lines of a script that are not only a comment, told without hpclaunch's own reader."""
    return {
        number: line.rstrip("\r")
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
        and not re.match(
            r"\s+#(?!PBS\b)|#(?!(SBATCH|PBS|BSUB|COBALT)\b)", line.removeprefix("#!" * (number == 1))
        )
    }


def check_report(text: str, ported: Ported) -> None:
    """Each line is in the report exactly once, unchanged; each change says to what, why, and its source."""
    report, needed = ported.report, must_be_reported(text)
    lines = lines_of(report)
    assert len(lines) == len(set(lines))
    assert needed.keys() - set(lines) == set()
    every = text.split("\n")
    for one in (*report.kept, *report.changed, *report.left_out):
        assert one.text == every[one.line - 1].rstrip("\r")
    assert all(one.to and one.why and one.source for one in report.changed)
    assert all(one.why for one in report.left_out)
    assert msgspec.json.encode(report)


def checked_port(text: str, to: str, source: str | None = None) -> Ported:
    """A script ported to a shipped site, whose report names each line, and whose job file renders."""
    ported = port_script(text, shipped(source) if source else None, shipped(to))
    check_report(text, ported)
    rendered(ported)
    return ported
