"""What --fix corrects is right afterwards, and nothing else is touched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpclaunch.lint.lint_script import all_rules, fix
from tests.in_one_test import in_one_test
from tests.lint.cases import SCRIPTS, findings, read_case

FIXABLE = {rule.id for rule in all_rules() if rule.fixable}


@in_one_test(
    "wrong, right",
    [
        ("srun --cpu-bind=map_cpu: 1,9, 17 ./app", "srun --cpu-bind=map_cpu:1,9,17 ./app"),
        ("srun --cpu-bind=map_cpu: \\\n 1,9 ./app", "srun --cpu-bind=map_cpu:1,9 ./app"),
        ("srun -n1 --cpu-bind mask_cpu:0x1, 0x2 ./app", "srun -n1 --cpu-bind mask_cpu:0x1,0x2 ./app"),
        ('srun --cpu-bind="map_cpu:1, 9" ./app', 'srun --cpu-bind="map_cpu:1,9" ./app'),
        ('MASK="0x1, 0x2"; use $MASK', 'MASK="0x1,0x2"; use $MASK'),
        ("MASK=0x1, 0x2", "MASK=0x1,0x2"),
        ("set -errext -nounset -o pipefail", "set -e -u -o pipefail"),
        ("set -pipefail; set -o errext", "set -o pipefail; set -o errexit"),
        ("set +xtrase", "set +x"),
        (
            "srun --export=ALL,A=x,y,B=1 ./app",
            "export A=x,y\nsrun --export=ALL,B=1 ./app",
        ),
        ("  srun --export ALL,A=0,1 ./app", "  export A=0,1\n  srun --export ALL ./app"),
        ("a\r\nb \r\n", "a\nb \n"),
    ],
)
def test_what_is_corrected(wrong: str, right: str) -> None:
    new, applied = fix(wrong, findings(wrong, "unknown"))
    assert new == right
    assert {one.rule for one in applied} <= FIXABLE
    assert fix(new, findings(new, "unknown"))[1] == ()


@in_one_test(
    "text",
    [
        "if true; then srun --export=ALL,A=x,y ./app; fi",  # the export would outlive the branch
        "true && srun --export=ALL,A=x,y ./app",
        "A=1 srun --export=ALL,A=x,y ./app",
        "srun --export=A=x,y ./app",  # without ALL srun keeps the environment out
        'srun --export="ALL,A=$B,y" ./app',
        "x=$(srun --export=ALL,A=x,y ./app)",
        "srun ./app && tee log",
        "srun ./app | tee log",
    ],
)
def test_what_only_a_person_can_say_is_left_alone(text: str) -> None:
    found = findings(text, "unknown")
    assert found
    assert fix(text, found) == (text, ())


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_fixing_a_script_leaves_fewer_findings_and_no_new_ones(path: Path) -> None:
    case = read_case(path)
    found = findings(case.text, case.site)
    new, applied = fix(case.text, found)
    left = findings(new, case.site)
    assert len(left) <= len(found) - len(applied)  # without blanks a list may be right
    assert {one.rule for one in left} <= {one.rule for one in found}
    if applied:
        answer = subprocess.run(["bash", "-n"], input=new, capture_output=True, text=True)
        assert (answer.returncode, answer.stderr) == (0, "")
