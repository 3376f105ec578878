"""A centre's own layer: which of its files counts, what it changes, and when it is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.folders import centre_folders
from hpclaunch.job.settings_files import read_layers
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.settings import JobSettings, merge
from tests.in_process import hpclaunch_here

WRONG = ("file", "folder", "owner") if os.geteuid() == 0 else ("file", "folder")  # only root gives files away
TRUE = JobSettings(command=("true",))
JOB = ("submit", "--site", "lumi-g", "--account", "project_465000001", "--dry-run")


@pytest.fixture
def centre(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the variable names, empty."""
    folder = tmp_path / "centre"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv("HPCLAUNCH_CENTRE", str(folder))
    return folder


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two folders of XDG_CONFIG_DIRS."""
    folders = tmp_path / "first" / "hpclaunch", tmp_path / "second" / "hpclaunch"
    for folder in folders:
        folder.mkdir(parents=True, mode=0o755)
    monkeypatch.setenv("XDG_CONFIG_DIRS", ":".join(str(folder.parent) for folder in folders))
    return folders


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    path.write_text(text)
    path.chmod(0o644)


def merged(line: JobSettings = TRUE) -> tuple[JobRequest, dict[str, Setting]]:
    request, settings = merge(read_layers(line, None), "lumi-g", "command line")
    return request, {setting.name: setting for setting in settings}


def test_the_order_of_the_folders(
    centre: Path, system: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert centre_folders()[:3] == (centre, *system)
    monkeypatch.delenv("HPCLAUNCH_CENTRE")
    assert centre_folders()[:2] == system
    monkeypatch.setenv("XDG_CONFIG_DIRS", f"relative:{system[1].parent}:/no/such/folder")
    assert centre_folders()[:1] == system[1:]


def test_a_variable_that_names_no_folder_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for wrong in ("relative", str(tmp_path / "none")):
        monkeypatch.setenv("HPCLAUNCH_CENTRE", wrong)
        with pytest.raises(BadInputError, match="HPCLAUNCH_CENTRE="):
            centre_folders()


def test_a_setting_comes_from_the_first_that_has_it(
    centre: Path, system: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpclaunch.job.settings_files._unix_groups", lambda: ("staff", "all"))
    user = tmp_path / "user"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(user))
    keys = ("nodes", "tasks_per_node", "gpus_per_task", "threads_per_core", "max_restarts", "cpus_per_task")
    texts = {
        user / "hpclaunch" / "config.yaml": "{nodes: 1, account: mine}",
        centre / "config.yaml": (
            "nodes: 7\naccount: theirs\n"
            "projects: {mine: {nodes: 2, tasks_per_node: 2}, theirs: {tasks_per_node: 7}}\n"
            "groups: {staff: {tasks_per_node: 3, gpus_per_task: 3}, other: {threads_per_core: 7},"
            " all: {gpus_per_task: 7, threads_per_core: 4}}\n"
            "sites: {lumi-g: {threads_per_core: 5, max_restarts: 5}, daint: {max_restarts: 7}}\n"
        ),
        system[0] / "config.yaml": "{max_restarts: 7, cpus_per_task: 6}",
        system[1] / "config.yaml": "{cpus_per_task: 7}",
    }
    for path, text in texts.items():
        write(path, text)
    request, settings = merged(JobSettings(command=("true",), site="lumi-g"))
    assert [getattr(request, key) for key in keys] == [1, 2, 3, 4, 5, 6]
    origins = [settings[key.replace("_", "-")].origin for key in keys]
    assert origins == [
        f"user config {user / 'hpclaunch' / 'config.yaml'}",
        f"centre config {centre / 'config.yaml'}, projects.mine",
        f"centre config {centre / 'config.yaml'}, groups.staff",
        f"centre config {centre / 'config.yaml'}, groups.all",
        f"centre config {centre / 'config.yaml'}, sites.lumi-g",
        f"centre config {system[0] / 'config.yaml'}",
    ]


def test_the_group_of_this_process_counts(centre: Path) -> None:
    import grp

    name = grp.getgrgid(os.getegid()).gr_name
    write(centre / "config.yaml", f"groups: {{{name}: {{nodes: 3}}, no-such-group: {{nodes: 4}}}}")
    assert merged()[0].nodes == 3


def test_the_site_of_a_centre_chooses_what_the_user_set_for_it(
    centre: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    write(centre / "config.yaml", "site: lumi-g")
    write(tmp_path / "user" / "hpclaunch" / "config.yaml", "sites: {lumi-g: {nodes: 5}}")
    assert merged()[0].nodes == 5


def test_a_refused_setting_is_told_in_the_words_of_the_centre(centre: Path) -> None:
    write(
        centre / "config.yaml",
        "queue: small-g\n"
        "refused: {queue: {dev-g: for the staff, small-g: never}, exclude: {'*': Slurm chooses}}\n",
    )
    done = hpclaunch_here(*JOB, "--partition", "dev-g", "--exclude", "nid1", "--", "true")
    path = centre / "config.yaml"
    assert f"queue dev-g (command line) is refused by {path}: for the staff" in done.stderr
    assert f"exclude nid1 (command line) is refused by {path}: Slurm chooses" in done.stderr
    assert hpclaunch_here(*JOB, "--strict", "--partition", "dev-g", "--", "true").returncode == 3
    assert (
        "is refused by" not in hpclaunch_here(*JOB, "--", "true").stderr
    )  # of its own default the centre says nothing


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("refused: {partitoin: {a: b}}", "refused.partitoin"),
        ("groups: {a: {no_such: 1}}", "unknown key 'no_such' in groups.a"),
        ("nodes: many", "nodes is 'many'"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(centre: Path, text: str, said: str) -> None:
    write(centre / "config.yaml", text)
    done = hpclaunch_here(*JOB, "--", "true")
    assert (done.returncode, said in done.stderr, str(centre) in done.stderr) == (3, True, True), done.stderr


@pytest.mark.parametrize(
    "place", ["config.yaml", "sites/here.yaml", "blocks/after_environment.sh", "templates/job.sh.j2"]
)
@pytest.mark.parametrize("wrong", WRONG)
def test_what_others_can_write_is_refused(
    centre: Path, place: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = centre / place
    write(path, "{}")
    if wrong == "owner":
        os.chown(path, 4321, -1)
    else:
        changed = path if wrong == "file" else path.parent
        changed.chmod(0o777 if wrong == "folder" else 0o666)
    done = hpclaunch_here(*JOB, "--", "true")
    assert done.returncode == 3
    said = "belongs to user 4321" if wrong == "owner" else "can be written by all users"
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_profile_stands_between_the_users_and_the_shipped_ones(
    centre: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    write(
        centre / "sites" / "lumi-g.yaml",
        "{schema: 1, name: lumi-g, part_of: lumi-g, description: of the centre}",
    )
    (listed,) = [
        each
        for each in json.loads(hpclaunch_here("sites", "list", "--json").stdout)
        if each["name"] == "lumi-g"
    ]
    assert (listed["origin"], listed["description"]) == ("centre", "of the centre")
    assert listed["hides"].endswith("site_profiles/lumi-g.yaml")
    assert "your centre's: " in hpclaunch_here("sites", "list").stdout
    own = tmp_path / "user" / "hpclaunch" / "sites" / "lumi-g.yaml"
    write(own, "{schema: 1, name: lumi-g, part_of: lumi-g}")
    shown = json.loads(hpclaunch_here("sites", "show", "lumi-g", "--json").stdout)
    assert shown["description"] == "of the centre"


def test_blocks_stand_around_the_environment(centre: Path, system: tuple[Path, Path]) -> None:
    write(
        centre / "blocks" / "before_environment.sh", "module load centre/2026  # {{ not }} {% a template %}"
    )
    write(system[0] / "blocks" / "before_environment.sh", "hidden by the first\n")
    write(system[0] / "blocks" / "after_environment.sh", "umask 027\n\n")
    lines = hpclaunch_here(*JOB, "--", "true").stdout.splitlines()
    at = lines.index(f"# Of the centre, {centre}/blocks/before_environment.sh:")
    assert lines[at + 1] == "module load centre/2026  # {{ not }} {% a template %}"
    after = lines.index(f"# Of the centre, {system[0]}/blocks/after_environment.sh:")
    assert lines[after + 1 : after + 3] == ["umask 027", ""]
    assert (
        at
        < lines.index("export OMP_NUM_THREADS=7  # threads for each rank: the cores it is bound to")
        < after
    )
    assert "hidden by the first" not in lines


def test_a_block_with_another_name_is_an_error(centre: Path) -> None:
    write(centre / "blocks" / "prologue.sh", "true\n")
    done = hpclaunch_here(*JOB, "--", "true")
    assert done.returncode == 3
    assert "prologue.sh: no block has this name" in done.stderr
    assert "before_environment, after_environment" in done.stderr


@pytest.mark.parametrize("text", ["if true; then", "cat <<EOF\nx", "echo 'open", "module load a \\"])
def test_a_block_that_would_swallow_the_next_lines_is_an_error(centre: Path, text: str) -> None:
    write(centre / "blocks" / "after_environment.sh", text)
    done = hpclaunch_here(*JOB, "--", "true")
    assert done.returncode == 3, done.stdout
    assert f"{centre}/blocks/after_environment.sh: " in done.stderr


# --- overlays of templates ---------------------------------------------------------------------------------

EXTENDS = '{% extends "job.sh.j2" %}\n'


def test_overlays_extend_one_another_and_say_whose_lines_they_add(
    centre: Path, system: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    user = tmp_path / "user" / "hpclaunch"
    plain = hpclaunch_here(*JOB, "--", "true").stdout.splitlines()
    for folder, variable in ((user, "A"), (centre, "B"), (system[0], "C")):
        block = (
            f"{{% block rank %}}\nexport {variable}={{{{ tasks }}}}\n{{{{ super() }}}}\n{{% endblock %}}\n"
        )
        write(folder / "templates" / "job.sh.j2", EXTENDS + block)
    lines = hpclaunch_here(*JOB, "--", "true").stdout.splitlines()
    added = [
        f"# Of the user, {user}/templates/job.sh.j2:",
        "export A=8",
        f"# Of the centre, {centre}/templates/job.sh.j2:",
        "export B=8",
        f"# Of the centre, {system[0]}/templates/job.sh.j2:",
        "export C=8",
    ]
    at = lines.index(added[0])
    assert lines[at : at + 6] == added
    assert lines[:at] + lines[at + 6 :] == plain


def test_an_overlay_without_super_takes_the_place_of_a_block(centre: Path) -> None:
    write(centre / "blocks" / "after_environment.sh", "umask 027\n")
    replaced, added = "{% block after_environment %}umask 077", "{% block launch %}{{ super() }}wait"
    end = "{% endblock %}"
    write(centre / "templates" / "job.sh.j2", f"{EXTENDS}{replaced}{end}{added}{end}")
    lines = hpclaunch_here(*JOB, "--", "true").stdout.splitlines()
    mark = f"# Of the centre, {centre}/templates/job.sh.j2:"
    assert [lines[at + 1] for at, line in enumerate(lines) if line == mark] == ["umask 077", "wait"]
    assert "umask 027" not in lines


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("{% block rank %}\n{% endblock %}", 1, "an overlay extends job.sh.j2"),
        ("", 1, "an overlay extends job.sh.j2"),
        ('{% extends "slurm.sh.j2" %}', 1, "an overlay extends job.sh.j2"),
        (EXTENDS + "\n{% block rnk %}\n{% endblock %}", 3, "no block has the name rnk; did you mean rank?"),
        (EXTENDS + "{% block _first_line %}\n{% endblock %}", 2, "no block has the name _first_line"),
        (EXTENDS + "\numask 027\n", 2, "this is in no block"),
        (EXTENDS + "{% block rank %}\n\n{{ taks }}\n{% endblock %}", 4, "'taks' is undefined"),
        (EXTENDS + "{% block rank %}\n{% if %}\n{% endblock %}", 3, "Expected an expression"),
        (EXTENDS + '{% block rank %}\n{{ ("").__class__ }}\n{% endblock %}', 3, "is unsafe"),
        (EXTENDS + "{% block rank %}\n{{ 1 / 0 }}\n{% endblock %}", 3, "division by zero"),
    ],
)
def test_what_is_wrong_in_an_overlay_is_told_with_its_line(
    centre: Path, text: str, line: int, said: str
) -> None:
    path = centre / "templates" / "job.sh.j2"
    write(path, text)
    done = hpclaunch_here(*JOB, "--", "true")
    assert (done.returncode, "Traceback" in done.stderr) == (3, False), done.stderr
    assert f"{path}, line {line}: " in done.stderr
    assert said in done.stderr


def test_a_script_that_bash_cannot_read_with_an_overlay_is_refused(centre: Path) -> None:
    path = centre / "templates" / "job.sh.j2"
    write(path, EXTENDS + "{% block start %}{{ super() }}if true; then\n{% endblock %}")
    done = hpclaunch_here(*JOB, "--", "true")
    assert done.returncode == 3
    assert f"{path}: bash cannot read a script with it" in done.stderr
