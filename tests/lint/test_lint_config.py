"""The configuration of ``hpclaunch lint``: files above the script, and the command line over them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.in_process import hpclaunch_here

PIPE = "#!/bin/bash\n#SBATCH -t 10\nsrun ./app | tee log\n"
DISCARDED = "#!/bin/bash\n#SBATCH -t 10\nsrun ./app 2>/dev/null\n"


def lint(folder: Path, *arguments: str) -> tuple[int, list[tuple[str, str, str]], str]:
    """The exit status, the findings as file, rule and severity, and stderr."""
    answer = hpclaunch_here("lint", "--json", *arguments, folder=folder)
    found = json.loads(answer.stdout).get("findings", [])
    return answer.returncode, [(one["file"], one["rule"], one["severity"]) for one in found], answer.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with two faulty scripts, one of them deeper."""
    (tmp_path / "old" / "deep").mkdir(parents=True)
    (tmp_path / "a.sh").write_text(PIPE)
    (tmp_path / "old" / "deep" / "b.sh").write_text(DISCARDED)
    return tmp_path


A = ("a.sh", "status-lost-in-pipe", "warning")
B = ("old/deep/b.sh", "stderr-discarded", "warning")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".hpclaunch-lint.yaml", "ignore: [stderr-*]\nseverity:\n  status-lost-in-pipe: error\n"),
        (
            "pyproject.toml",
            '[tool.hpclaunch.lint]\nignore = ["stderr-*"]\nseverity = {status-lost-in-pipe = "error"}\n',
        ),
        (
            "pyproject.toml",
            '[project]\nname = "x"\n[tool]\nhpclaunch.lint.ignore = ["stderr-*"]\n'
            '[tool.hpclaunch.lint.severity]\n"*" = "note"\nstatus-lost-in-pipe = "error"\n',
        ),
    ],
)
def test_a_file_above_the_script_ignores_rules_and_sets_severities(tree: Path, name: str, text: str) -> None:
    assert lint(tree, ".")[:2] == (1, [A, B])
    (tree / name).write_text(text)
    assert lint(tree, ".")[:2] == (1, [(A[0], A[1], "error")])
    assert lint(tree / "old" / "deep", "b.sh")[:2] == (0, [])


def test_a_severity_decides_the_exit_status(tree: Path) -> None:
    (tree / ".hpclaunch-lint.yaml").write_text("severity: {'st*': note}\n")
    assert lint(tree, ".")[:2] == (0, [(*A[:2], "note"), (*B[:2], "note")])


def test_the_nearest_file_counts_alone(tree: Path) -> None:
    (tree / ".hpclaunch-lint.yaml").write_text("ignore: ['*']\n")
    (tree / "pyproject.toml").write_text('[tool.hpclaunch.lint]\nignore = ["status-*"]\n')
    (tree / "old" / ".hpclaunch-lint.yaml").write_text("select: [stderr-discarded]\n")
    (tree / "old" / "deep" / "pyproject.toml").write_text('[project]\nname = "hpclaunch"\n')
    assert lint(tree, ".")[:2] == (1, [B])


def test_the_command_line_wins(tree: Path) -> None:
    config = tree / ".hpclaunch-lint.yaml"
    config.write_text("ignore: [status-*]\n")
    assert lint(tree, ".", "--ignore", "stderr-*")[:2] == (0, [])
    assert lint(tree, ".", "--select", "status-*")[:2] == (1, [A])
    config.write_text("select: [stderr-*]\n")
    assert lint(tree, ".")[:2] == (1, [B])
    assert lint(tree, ".", "--select", "*")[:2] == (1, [A, B])


def test_the_site_of_the_file_and_of_the_command_line(tree: Path) -> None:
    (tree / "a.sh").write_text("#!/bin/bash\n#SBATCH -t 10 -p nowhere-known\nsrun ./app\n")
    assert "queue-unknown" not in {rule for _, rule, _ in lint(tree, "a.sh")[1]}
    (tree / ".hpclaunch-lint.yaml").write_text("site: lumi-g\n")
    status, found, stderr = lint(tree, "a.sh")
    assert (status, stderr) == (1, "")
    assert "directive-missing" in {rule for _, rule, _ in found}
    assert lint(tree, "a.sh", "--site", "generic-slurm")[:2] == (0, [])
    (tree / "sites").mkdir()
    (tree / "sites" / "own.yaml").write_text("schema: 1\nname: own\ndescription: ours\nextends: lumi-g\n")
    (tree / ".hpclaunch-lint.yaml").write_text("site: sites/own.yaml\n")
    (tree / "old" / "deep" / "a.sh").write_text("#!/bin/bash\n#SBATCH -p nowhere-known\nsrun ./app\n")
    status, found, stderr = lint(tree / "old" / "deep", "a.sh")
    assert (status, found, stderr) == (0, [("a.sh", "time-missing", "note")], "")  # of a known site


@pytest.mark.parametrize("pattern", ["old", "old/", "b.*", "old/deep", "old/*/b.sh"])
def test_excluded_scripts_and_folders(tree: Path, pattern: str) -> None:
    (tree / ".hpclaunch-lint.yaml").write_text(f"exclude: ['{pattern}']\n")
    assert lint(tree, ".")[:2] == (1, [A])
    status, found, stderr = lint(tree / "old", "deep/b.sh", "../a.sh")
    assert (status, found) == (1, [("../a.sh", *A[1:])])
    assert f"note: deep/b.sh is left out: {tree / '.hpclaunch-lint.yaml'} excludes it\n" in stderr


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            ".hpclaunch-lint.yaml",
            "site: lumi-g\nignores: [x]\n",
            ".hpclaunch-lint.yaml:2: unknown key 'ignores' in the file; did you mean 'ignore'?",
        ),
        (
            "pyproject.toml",
            '[tool.hpclaunch.lint]\nsite = "lumi-g"\nignores = ["x"]\n',
            "pyproject.toml:1: unknown key 'ignores' in lint; did you mean 'ignore'?",
        ),
        (
            "pyproject.toml",
            "[tool.hpclaunch.lnit]\nselect = []\n",
            "pyproject.toml:1: unknown key 'lnit' in the file; did you mean 'lint'?",
        ),
        (
            ".hpclaunch-lint.yaml",
            "ignore:\n  - time-missing\n  - time-mising\n",
            ".hpclaunch-lint.yaml:3: ignore: no rule is called time-mising; did you mean time-missing?",
        ),
        (
            "pyproject.toml",
            '[tool.hpclaunch.lint.severity]\ntime-missing = "fatal"\n',
            "pyproject.toml:1: lint.severity.time-missing is 'fatal'; it must be one of error, warning, note",
        ),
        (".hpclaunch-lint.yaml", "exclude: old\n", "it must be a list"),
        (".hpclaunch-lint.yaml", "exclude: [\n", ".hpclaunch-lint.yaml:2: not YAML"),
        ("pyproject.toml", "[tool.hpclaunch.lint\n", "pyproject.toml: not TOML: "),
        (".hpclaunch-lint.yaml", "site: nowhere\n", "nowhere"),
    ],
)
def test_a_wrong_file_is_status_3_with_file_line_and_key(
    tree: Path, name: str, text: str, message: str
) -> None:
    (tree / name).write_text(text)
    status, found, stderr = lint(tree, ".")
    assert (status, found) == (3, [])
    assert message in stderr
    assert "Traceback" not in stderr


def test_python_3_10_without_a_reader_of_toml_says_so(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("tomllib", "tomli"):
        monkeypatch.setitem(sys.modules, module, None)
    (tree / "pyproject.toml").write_text('[project]\ndependencies = ["hpclaunch"]\n')
    assert lint(tree, ".")[:2] == (1, [A, B])
    (tree / "pyproject.toml").write_text('[tool.hpclaunch.lint]\nignore = ["*"]\n')
    status, _, stderr = lint(tree, ".")
    assert status == 3
    assert "pyproject.toml: Python 3.10 cannot read [tool.hpclaunch.lint]\n  pip install tomli, or" in stderr
