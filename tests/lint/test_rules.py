"""Every rule finds what it is for, at its line, and passes what only looks alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpclaunch.lint.lint_script import all_rules
from hpclaunch.site.load_profile import load_site
from hpclaunch.software.known_pairs import first_cuda
from tests.in_one_test import in_one_test
from tests.lint.cases import DATA, SCRIPTS, findings, places, read_case
from tests.plan.test_golden import cases, of_a_program, script_needs_files, script_of

GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("*.sh"))
RULES = [rule.id for rule in all_rules()]


@in_one_test("path", SCRIPTS)
def test_exactly_the_expected_is_found(path: Path) -> None:
    case = read_case(path)
    found = findings(case.text, case.site)
    assert places(found, path.stem.partition(".")[0]) == sorted(
        case.expected, key=lambda place: (place[0] or 0, place[1])
    ), found


@in_one_test("rule", RULES)
def test_every_rule_has_scripts_that_trigger_it_and_near_misses(rule: str) -> None:
    named = [path for path in SCRIPTS if path.stem.partition(".")[0] == rule]
    near = [path for path in named if path.stem.partition(".")[2].startswith("near-")]
    broken = [path for path in named if path not in near]
    assert len(broken) >= 2
    assert all(rule in [found for _, found in read_case(path).expected] for path in broken)
    assert near
    assert all(rule not in [found for _, found in read_case(path).expected] for path in near)


def test_every_script_is_named_after_a_rule_or_is_a_twin() -> None:
    assert {path.stem.partition(".")[0] for path in SCRIPTS} <= {*RULES, "script"}


@pytest.mark.slow
@in_one_test("path", GOLDEN)
def test_nothing_is_found_in_our_own_scripts(path: Path, tmp_path: Path) -> None:
    found = findings(path.read_text(), path.stem.partition(".")[0], tmp_path)
    # The modules of a machine that is switched off are old.
    assert [one for one in found if one.rule != "module-old"] == []


@pytest.mark.slow
@in_one_test("name", cases())
def test_nothing_is_found_in_our_plain_scripts(name: str, tmp_path: Path) -> None:
    if script_needs_files(name):
        return
    found = findings(script_of(of_a_program(name), plain=True), name.partition(".")[0], tmp_path)
    assert [one for one in found if one.rule != "module-old"] == []


@in_one_test("rule", all_rules())
def test_a_rule_says_what_why_and_what_would_be_right(rule: object) -> None:
    assert [
        name for name in ("what", "why", "remedy", "bad", "good") if not getattr(rule, name).strip()
    ] == []


@in_one_test("script, severity", [("filesystems", "error"), ("advised", "note"), ("account", "warning")])
def test_only_what_the_site_refuses_without_is_an_error(script: str, severity: str) -> None:
    case = read_case(DATA / f"directive-missing.{script}.sh")
    found = [one.severity for one in findings(case.text, case.site) if one.rule == "directive-missing"]
    assert found == [severity]


@in_one_test(
    "script, severity",
    [
        ("directive-stray-word.torque", "note"),
        ("directive-stray-word.pbs", "error"),
        ("directive-stray-word.words", "error"),
        ("directive-stray-word.sge", "warning"),
        ("placeholder.dots", "warning"),
        ("scheduler-variable-unset.array", "note"),
        ("scheduler-variable-unset.array-off", "warning"),
    ],
)
def test_a_finding_is_as_grave_as_it_is_certain(script: str, severity: str) -> None:
    case = read_case(DATA / f"{script}.sh")
    rule = script.partition(".")[0]
    found = findings(case.text, case.site)
    assert [one.severity for one in found if one.rule == rule] == [severity]


@pytest.mark.parametrize(("line", "severity"), [("srun ./app", "warning"), ("sbatch -N2 job.sh", "note")])
def test_a_script_that_submits_another_needs_no_directives(line: str, severity: str) -> None:
    found = findings(f"#!/bin/bash\n{line}\n", "unknown")
    assert [one.severity for one in found if one.rule == "no-directives"] == [severity]


@in_one_test(
    "directives, port, severity",
    [
        ("--gpus-per-node=1", "29500", "warning"),
        ("--gpus-per-node=8", "29500", "note"),
        ("--exclusive", "29500", "note"),
        ("--gpus-per-node=4", "$((40000 + SLURM_JOB_ID % 1000))", "note"),
        ("--gpus-per-node=4", "45678", "warning"),
        ("--gpus-per-node=4", "$((60000 + SLURM_JOB_ID % 10000))", "warning"),
        ("--gpus-per-node=4", "66000", "error"),
    ],
)
def test_a_port_is_as_grave_as_it_is_likely_to_be_taken(directives: str, port: str, severity: str) -> None:
    text = f"#!/bin/bash\n#SBATCH {directives}\nexport MASTER_PORT={port}\nsrun python train.py\n"
    found = [one for one in findings(text, "unknown") if one.rule.startswith("master-port")]
    assert severity == min((one.severity for one in found), key=["error", "warning", "note"].index)


def test_lint_and_the_environment_have_one_table_of_cuda_and_gpus() -> None:
    """The first CUDA that software.known_pairs names is the first that lint takes."""
    profile = load_site("olivia")
    assert profile.node is not None
    first = first_cuda(profile.node.gpu_arch or "")
    assert first is not None
    major, minor = first.split(".")
    for version, rules in ((first, set[str]()), (f"{major}.{int(minor) - 1}", {"cuda-too-old-for-gpu"})):
        found = findings(f"#!/bin/bash\nmodule load CUDA/{version}.0\n", "olivia")
        assert {each.rule for each in found if each.rule.startswith("cuda")} == rules
