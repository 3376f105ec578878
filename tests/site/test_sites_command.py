"""``hpclaunch sites`` as people call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import hpclaunch_here
from tests.site.conftest import Write

pytestmark = pytest.mark.slow


def sites(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return hpclaunch_here("sites", *words, environment=environ)


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


def test_list_has_three_groups(write: Write) -> None:
    write("here")
    lines = sites("list").stdout.splitlines()
    titles = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
    assert titles[:2] == ["live", "generic"]
    below = {line.split()[0]: title for title, line in _with_titles(lines) if line[2] != " "}
    assert (below["here"], below["frontier"], below["generic-slurm"]) == ("live", "live", "generic")
    assert below["local"] == "generic"


def _with_titles(lines: list[str]) -> list[tuple[str, str]]:
    rows, title = [], ""
    for line in lines:
        if line.startswith(" "):
            rows.append((title, line))
        else:
            title = line.partition(":")[0]
    return rows


def test_check_lists_what_was_read_long_ago(write: Write) -> None:
    write("here", ("checked: 2026-11-20", "checked: 2024-02-29"))
    done = sites("check", "here")
    assert done.returncode == 1
    assert "2024-02-29" in done.stdout
    assert "https://example.org/page  [page] of here" in done.stdout
    assert "1 of 1 sources were read more than 365 days ago" in done.stdout
    old = json.loads(sites("check", "here", "--json").stdout)["old"]
    assert [(one["checked"], one["sites"]) for one in old] == [("2024-02-29", ["here"])]
    assert sites("check", "here", "--older-than", "100000").returncode == 0
    assert sites("check", "nowhere").returncode == 3


def test_check_names_each_page_once_with_all_its_sites(write: Write) -> None:
    write("mine", text="schema: 1\nname: mine\npart_of: daint\n")
    document = json.loads(sites("check", "daint", "mine", "--older-than", "0", "--json").stdout)
    pages = [(one["url"], one["checked"], one["evidence"]) for one in document["old"]]
    assert 0 < len(pages) == len(set(pages)) <= document["sources"]
    assert {tuple(one["sites"]) for one in document["old"]} == {("daint", "mine")}


def test_show_prints_sources_and_dates() -> None:
    text = sites("show", "daint").stdout
    assert "\n  part_of " in text
    assert "[cluster] https://docs.cscs.ch/clusters/daint/, read 2026-11-23" in text
    assert "UNVERIFIED" in text
    assert "NCCL_PROTO=^LL128  [nccl]" in text
    assert "unset NCCL_NET" in text
    assert "nic: gb_s 25, per_node 4, kind Slingshot-11  [gh200-cores]" in text
    assert "network: layout dragonfly  [link-speeds]" in text


def test_show_says_what_is_not_known() -> None:
    def unknown(site: str) -> list[str]:
        found = [line for line in sites("show", site).stdout.splitlines() if line.startswith("not known: ")]
        return found[0].removeprefix("not known: ").split(", ") if found else []

    assert {"retired.since", "retired.successor", "links.nic"} <= set(unknown("theta"))
    assert not {"links.gpu_gpu", "links.cpu_gpu"} & set(unknown("theta"))  # it has no GPUs
    assert "billing" in unknown("mn5-acc")
    assert "fabric.allreduce" not in unknown("daint")
    assert unknown("generic-slurm") == []


def test_show_json_is_the_merged_profile() -> None:
    profile = document("show", "daint")
    assert (profile["part_of"], profile["node_kind"]) == ("alps-gh200", "gh200x4-slingshot")
    assert profile["node"]["cores"] == 288
    assert profile["sources"]["cluster"]["checked"] == "2026-11-23"


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


def test_a_broken_profile_that_may_be_this_machines_is_not_passed_over(write: Write, tmp_path: Path) -> None:
    """Else its users' jobs go on as those of an unknown cluster: without limits, account and price."""
    write("broken", text="schema: [\n")
    environ = {"SLURM_CLUSTER_NAME": "elsewhere", "HPCLAUNCH_SYSROOT": str(tmp_path)}
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    environ["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    words = ("--dry-run", "--account", "project_465000001", "--", "true")
    done = hpclaunch_here("submit", *words, environment=environ)
    assert (done.returncode, "broken may be that of this machine" in done.stderr) == (3, True)
    assert hpclaunch_here("submit", "--site", "lumi-g", *words, environment=environ).returncode == 0
    known = {**environ, "SLURM_CLUSTER_NAME": "lumi"}
    assert hpclaunch_here("submit", *words, environment=known).returncode == 0
    assert "profile broken cannot be read" in hpclaunch_here("doctor", environment=environ).stdout


def test_schema_is_one_json_document() -> None:
    assert json.loads(sites("schema").stdout)["title"] == "hpclaunch site profile"


@pytest.mark.parametrize(
    "words", [(), ("list",), ("show",), ("validate",), ("check",), ("detect",), ("schema",)]
)
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
