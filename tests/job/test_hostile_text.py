"""Every text of a request, a profile and the configuration is refused, or arrives exactly as it was given."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError
from hpclaunch.job.job_script import dry_run
from hpclaunch.job.prepare import SubmitMode, prepare
from hpclaunch.job.settings_files import read_layers
from hpclaunch.package_data import resource_dir
from hpclaunch.plan.request_texts import SCRIPT_OWN
from hpclaunch.plan.settings import JobSettings, Layer
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.schema import SiteProfile
from tests.how_much import examples
from tests.job.hostile import (
    MARK,
    Bash,
    JobText,
    KeyPath,
    expanded,
    few_hostile_texts,
    has,
    hostile_texts,
    job_documents,
    profile_documents,
    slurm_documents,
    text_fields,
    value_at,
    with_text,
    without_comments,
)
from tests.scripts import bare

pytestmark = pytest.mark.slow  # together; each field takes a second
CODE = ("environment", "container", "activate")  # a shell line by its definition
REQUEST_FIELDS = [path for path in (*text_fields(JobSettings), ("command", 1)) if path != CODE]
# A source is a key of sources, in all its places: no script holds it.
PROFILE_FIELDS = [path for path in text_fields(SiteProfile) if path[-1] != "source" or len(path) == 2]
PROFILE_FIELDS.remove(CODE)
GOLDEN = Path(__file__).parents[1] / "golden"
USUAL = "Usual7"
PROGRAMS = (("command", 0), ("python",), ("software", "python"), ("environment", "eessi", "script"))
QUEUED = ("generic-slurm", "generic-pbs", "generic-lsf", "generic-flux")
SOFTWARE = ("environment", "container", "container_bind", "venv", "conda", "module")
EXPANDED = ("environment", "env", "fabric", "software")
UNCHANGED = (("fabric", "launch_options", 0), ("software", "python"))
PAIR = ("software", "other_containers", 0, "binds", 0)
# Whole lines by their definition: the profile's author writes code, or a directive, there.
LINES = (
    ("software", "setup", 0, "text"),
    ("software", "container", "modules", 0),
    ("software", "other_containers", 0, "modules", 0),
    ("directives", 0, "text"),
)


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Bash:
    return Bash(tmp_path_factory.mktemp("bash"))


class _NoAliases(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def to_yaml(document: Any) -> str:
    return yaml.dump(document, Dumper=_NoAliases)


def script_of(document: dict[str, Any], folder: Path) -> str:
    """Return the script for a job file."""
    file = folder / "job.yaml"
    file.write_text(to_yaml(document))
    return JobText.of(prepare(read_layers(JobSettings(), file), SubmitMode(here=False)))


def refused(document: dict[str, Any], folder: Path) -> str | None:
    """Return the script; None where the request is refused as bad input, in so many words."""
    try:
        return script_of(document, folder)
    except BadInputError:
        return None


@cache
def in_yaml(text: str) -> bool:
    try:
        return bool(yaml.load(to_yaml([text]), yaml.CSafeLoader) == [text])
    except (yaml.YAMLError, UnicodeEncodeError):
        return False


def as_program(path: KeyPath, text: str) -> str:
    """A text that can be the name of a program in a folder, also after its variables are expanded."""
    text = text.replace("/", "_").replace("%", "_")[:200]  # %j would be a job of bash
    return text.replace("$HOME", "").replace("${HOME}", "") if path[0] in SOFTWARE else text


def usual_of(document: dict[str, Any], path: KeyPath, folder: Path) -> str:
    """Return a harmless text for this field: one that is nowhere else, if the field is free."""
    usual = USUAL if refused(with_text(document, path, written(path, USUAL)), folder) else None
    return usual or value_at(document, path)


def written(path: KeyPath, text: str) -> str:
    """Return how a job file or profile has the text there."""
    return f"{text}:dest" if path in (("stage", 0), ("container_bind", 0), PAIR) else text


def check(bash: Bash, folder: Path, document: dict[str, Any], path: KeyPath, texts: list[str]) -> None:
    """Take each text in place of a harmless one: it is refused, or all else stays and it arrives."""
    usual = usual_of(document, path, folder)
    before = script_of(with_text(document, path, written(path, usual)), folder)
    seen = cache(lambda: bash.observe(before, usual))  # only where the field is in the script
    for text in texts:
        if path in PROGRAMS:  # one of that name must be found
            text = as_program(path, text)
        after = refused(with_text(document, path, written(path, text)), folder)
        if after is None or without_comments(after) == without_comments(before):
            continue
        expected = expanded(text, bash.home) if path[0] in SOFTWARE else text
        got = bash.observe(after, text)
        if path == ("directives", 0):
            assert any(f"#SBATCH {text}{end}" in after for end in ("\n", "  # "))
        else:
            want = Counter({word.replace(usual, expected): n for word, n in seen().items()})
            assert got == want, (path, text[:200])


@pytest.mark.parametrize("path", REQUEST_FIELDS, ids=lambda path: ".".join(map(str, path)))
def test_every_text_of_a_request(path: KeyPath, bash: Bash, tmp_path: Path) -> None:
    documents = [*job_documents("generic-slurm"), *slurm_documents("generic-slurm")]
    fitting = [document for document in documents if has(document, path)]
    assert fitting, f"no document of the tests has {path}: add it there"
    check(bash, tmp_path, fitting[0], path, [*filter(in_yaml, hostile_texts(bash.canary))])


@pytest.mark.parametrize("path", [("container",), ("container_bind", 0)], ids=lambda path: path[0])
@pytest.mark.parametrize("runtime", ["shifter", "podman-hpc", "pyxis"])
def test_texts_of_each_container_runtime(runtime: str, path: KeyPath, bash: Bash, tmp_path: Path) -> None:
    documents = job_documents("generic-slurm")
    (document,) = (each for each in documents if each.get("container_runtime") == runtime)
    check(bash, tmp_path, document, path, [*filter(in_yaml, hostile_texts(bash.canary))])


JOBS: tuple[dict[str, Any], ...] = (
    {"command": ["program7", MARK], "nodes": 2},
    {"command": ["program7"], "environment": {"container": {"image": "image.sif"}}},
    {"command": ["program7"], "environment": {"container": {"image": "a/b", "runtime": "podman-hpc"}}},
    {"command": ["program7"], "environment": {"eessi": {"version": "2023.06", "init": "container"}}},
    {"command": ["mnist"], "stage": ["data"]},
)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Layer]]:
    """The settings of these jobs at the site ``here``."""
    file = tmp_path_factory.mktemp("jobs") / "job.yaml"
    found = []
    for job in JOBS:
        file.write_text(to_yaml({"site": "here", "account": MARK, **job}))
        found.append(read_layers(JobSettings(), file))
    return found


def scripts_of(jobs: list[list[Layer]], document: dict[str, Any], folder: Path) -> list[str] | None:
    """Return the scripts of some jobs at a site; None where its profile, or the jobs there, are refused."""
    site = folder / "here.yaml"
    site.write_text(to_yaml(document))
    try:
        profile = load_site(str(site))
    except BadInputError:
        return None
    with pytest.MonkeyPatch.context() as patch:  # read once for all of them: it takes most of the time
        patch.setattr("hpclaunch.job.prepare.load_site", lambda _: profile)
        try:
            return [JobText.of(prepare(layers, SubmitMode(here=False))) for layers in jobs]
        except BadInputError:
            return None


@pytest.mark.parametrize("path", PROFILE_FIELDS, ids=lambda path: ".".join(map(str, path)))
def test_every_text_of_a_profile(path: KeyPath, bash: Bash, jobs: list[list[Layer]], tmp_path: Path) -> None:
    document = next((each for each in profile_documents() if has(each, path)), None)
    assert document, f"no profile of the tests has {path}: add it there"
    usual, before = USUAL, scripts_of(jobs, with_text(document, path, written(path, USUAL)), tmp_path)
    if before is None:
        usual, before = value_at(document, path), scripts_of(jobs, document, tmp_path)
    assert before is not None
    seen = cache(lambda script: bash.observe(script, usual))  # only where the field is in a script
    for text in filter(in_yaml, few_hostile_texts(bash.canary)):
        if path in PROGRAMS:
            text = as_program(path, text)
        after = scripts_of(jobs, with_text(document, path, written(path, text)), tmp_path)
        expected = text if path in UNCHANGED or path[0] not in EXPANDED else expanded(text, bash.home)
        for one, other in zip(before, after or before, strict=True):
            if without_comments(one) == without_comments(other):
                continue
            if path in LINES:
                assert {text, f"#SBATCH {text}"} & set(bare(other).split("\n"))
                continue
            want = Counter({word.replace(usual, expected): n for word, n in seen(one).items()})
            assert bash.observe(other, text) == want, (path, text[:200])


@pytest.mark.parametrize("as_site", [True, False])
def test_every_text_of_the_configuration(
    as_site: bool, bash: Bash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration has the keys of a job file, so one text in each of them is enough."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "hpclaunch").mkdir()
    text = hostile_texts(bash.canary)[0]
    for document in [*job_documents("generic-slurm"), *slurm_documents("generic-slurm")]:
        for path in REQUEST_FIELDS:
            if not has(document, path):
                continue
            changed = with_text(document, path, as_program(path, text) if path in PROGRAMS else text)
            site = changed.pop("site") if as_site else None
            config = {"site": site, "sites": {site: changed}} if as_site else changed
            (tmp_path / "hpclaunch" / "config.yaml").write_text(to_yaml(config))
            try:
                prepared = prepare(read_layers(JobSettings(), None), SubmitMode(here=False))
                script = JobText.of(prepared)
            except BadInputError:
                continue
            bash.observe(script, text.replace("/", "_"))


@settings(
    max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_text_in_any_field_on_any_scheduler(data: st.DataObject, bash: Bash, tmp_path: Path) -> None:
    document = data.draw(st.sampled_from([each for site in QUEUED for each in job_documents(site)]))
    path = data.draw(st.sampled_from([path for path in REQUEST_FIELDS if has(document, path)]))
    pieces = st.one_of(
        st.sampled_from(hostile_texts(bash.canary)[:13]),
        st.sampled_from(list("'\"$`\\\n\t ;&|#%!*?[]{}()<>~=-:,@\r\v\f\u2028\u202e\u0000")),
        st.text(max_size=8),
    )
    text = "".join(data.draw(st.lists(pieces, max_size=6)))
    if (
        path[0] in SOFTWARE
    ):  # there $NAME is expanded; any NAME that chance makes has a value that is not known
        text = re.sub(r"\$(?=[A-Za-z_])", "", text)
    if in_yaml(text):
        check(bash, tmp_path, document, path, [text])


def test_long_texts_arrive_or_are_refused(bash: Bash, tmp_path: Path) -> None:
    """Linux takes an argument or variable of up to 128 KiB; nothing else is that long."""
    word = "it's " * 20_000
    program = JobSettings(site="generic-slurm", command=("program7", word), env={"NAME": word})
    calls = bash.observe(dry_run(prepare([Layer(origin="command line", settings=program)]))[1])
    assert calls[f"call program7\0{word}"] == calls[f"variable NAME={word}"] == 1
    for more in (
        {"command": ("a", "x" * 131_072)},
        {"env": {"A": "x" * 131_070}},
        {"account": "a" * 100_000},
    ):
        request = JobSettings(**{"site": "generic-slurm", "command": ("a",), **more})
        with pytest.raises(BadInputError, match="bytes; at most"):
            prepare([Layer(origin="command line", settings=request)])
    assert not tmp_path.joinpath("hpclaunch-77").exists()


def test_a_name_of_a_variable_is_one_that_neither_bash_nor_the_script_uses(tmp_path: Path) -> None:
    for name in ("UID", "PIPESTATUS", "rank_end", "hpclaunch_code", "HPCLAUNCH_JOB_FOLDER", "RANK"):
        assert refused({"site": "generic-slurm", "command": ["a"], "env": {name: "1"}}, tmp_path) is None


def test_every_variable_of_the_scripts_is_known_as_theirs() -> None:
    scripts = "\n".join(path.read_text() for path in GOLDEN.glob("*.sh"))
    lines = re.findall(r"^\s*((?:[a-z_]\w*=\S*[ \n])+)", scripts, re.MULTILINE)
    set_there = {name for line in lines for name in re.findall(r"(?:^| )([a-z_]\w*)=", line)}
    set_there |= set(re.findall(r"^\s*([a-z_]\w*)=", scripts, re.MULTILINE))
    read_there = set(re.findall(r"\bread -r ([a-z]\w*) <|^\s*for ([a-z]\w*)[ ;]", scripts, re.M))
    names = set_there.union(*read_there) - {""}
    assert {"cpus", "gpus", "folder", "rank_end"} <= names
    read = {"node_start", "python", "rank_start", "start_ranks"}  # in another way
    own = {name for name in SCRIPT_OWN if name.islower()} - read
    assert {name for name in names if not name.startswith("hpclaunch_")} == own


def test_the_functions_that_start_the_program_have_no_local_variables() -> None:
    """Of an exported variable bash hands the local value to what the function starts."""
    for file, name in (("supervise.sh", "hpclaunch_supervise"), ("rank.sh", "hpclaunch_run")):
        text = (resource_dir("remote") / file).read_text()
        assert "local" not in text.partition(f"\n{name}() {{\n")[2].partition("\n}")[0]
