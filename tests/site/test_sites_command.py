"""``hpclaunch sites`` as people call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.site.conftest import Write

pytestmark = pytest.mark.slow


def sites(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environ}
    return subprocess.run(
        [sys.executable, "-m", "hpclaunch", "sites", *words],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )


def document(*words: str, **environ: str) -> Any:
    done = sites(*words, "--json", **environ)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_list_marks_the_users_profiles(write: Write) -> None:
    write("here")
    write("lumi-g", text="schema: 1\nname: lumi-g\nextends: lumi-g\n")
    write("broken", text="schema: 1\n")
    rows = {row["name"]: row for row in document("list")}
    assert (rows["here"]["origin"], rows["here"]["hides"]) == ("user", None)
    assert rows["lumi-g"]["hides"].endswith("site_profiles/lumi-g.yaml")
    assert (rows["polaris"]["origin"], rows["polaris"]["status"]) == ("shipped", "production")
    assert "broken.yaml:1: the profile lacks 'name'" in rows["broken"]["error"]
    text = sites("list").stdout
    assert "yours: " in text
    assert "hides " in text
    assert "BROKEN: " in text


def test_show_prints_sources_and_dates() -> None:
    text = sites("show", "daint").stdout
    assert "extends" in text
    assert "[cluster] https://docs.cscs.ch/clusters/daint/, read 2026-11-20" in text
    assert "UNVERIFIED" in text
    assert "NCCL_PROTO=^LL128  [nccl]" in text
    assert "unset NCCL_NET" in text


def test_show_json_is_the_merged_profile() -> None:
    profile = document("show", "daint")
    assert profile["extends"] == "alps-gh200"
    assert profile["node"]["cores"] == 288
    assert profile["sources"]["cluster"]["checked"] == "2026-11-20"


def test_show_of_an_unknown_site_exits_3() -> None:
    done = sites("show", "lumi")
    assert (done.returncode, done.stdout) == (3, "")
    assert "did you mean 'lumi-g'?" in done.stderr


def test_validate_separates_good_from_bad(write: Write, tmp_path: Path) -> None:
    write("here")
    bad = write("bad", ("max_nodes: 4", "max_nodes: four"))
    done = sites("validate", "here", str(bad))
    assert done.returncode == 3
    assert done.stdout == "here: ok\n"
    assert done.stderr.startswith(
        "config/hpclaunch/sites/bad.yaml:12: queues.main.max_nodes is 'four'; it must be"
    )
    results = json.loads(sites("validate", "here", str(bad), "--json").stdout)
    assert [result["ok"] for result in results] == [True, False]
    assert sites("validate", "here").returncode == 0
    assert sites("validate").returncode == 2


def test_validate_of_a_missing_file(tmp_path: Path) -> None:
    done = sites("validate", "none.yaml")
    assert (done.returncode, "none.yaml: cannot be read: No such file" in done.stderr) == (3, True)


def test_detect_shows_its_evidence(tmp_path: Path) -> None:
    environ = {"SLURM_CLUSTER_NAME": "lumi", "HPCLAUNCH_SYSROOT": str(tmp_path)}
    found = document("detect", **environ)
    assert found["site"] == "lumi-g"
    assert {"site": "lumi-g", "strength": "strong", "what": "SLURM_CLUSTER_NAME is lumi"} in found["evidence"]
    assert sites("detect", **environ).stdout.startswith("lumi-g: SLURM_CLUSTER_NAME is lumi\n")


def test_detect_says_unknown(tmp_path: Path) -> None:
    environ = {"SLURM_CLUSTER_NAME": "elsewhere", "HPCLAUNCH_SYSROOT": str(tmp_path)}
    assert document("detect", **environ)["site"] == "unknown"
    assert sites("detect", **environ).stdout.startswith("unknown: ")


def test_detect_survives_a_broken_profile(write: Write, tmp_path: Path) -> None:
    write("broken", text="schema: [\n")
    environ = {"SLURM_CLUSTER_NAME": "lumi", "HPCLAUNCH_SYSROOT": str(tmp_path)}
    done = sites("detect", **environ)
    assert done.returncode == 0
    assert done.stdout.startswith("lumi-g: ")
    assert "note: profile broken cannot be read" in done.stdout


def test_schema_is_one_json_document() -> None:
    assert json.loads(sites("schema").stdout)["title"] == "hpclaunch site profile"


@pytest.mark.parametrize("words", [(), ("list",), ("show",), ("validate",), ("detect",), ("schema",)])
def test_help_has_an_example(words: tuple[str, ...]) -> None:
    assert "Example: hpclaunch sites" in " ".join(sites(*words, "--help").stdout.split())


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, click.testing; from hpclaunch.cli.main import program;"
        "click.testing.CliRunner().invoke(program, ['sites', '--help'], catch_exceptions=False);"
        "print(sorted({'yaml', 'msgspec', 'numpy', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
