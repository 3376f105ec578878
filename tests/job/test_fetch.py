"""Results come home over a real ssh, and no answer of the other machine writes where it should not."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.ssh import connect
from hpclaunch.job.fetch_results import fetch, list_results
from hpclaunch.job.job_documents import FetchDocument
from hpclaunch.job.record import JobRecord
from hpclaunch.job.store import Store
from tests.own_process import hpclaunch
from tests.testbed.cluster import Sshd
from tests.testbed.kit import new_record

pytestmark = pytest.mark.sshd


@pytest.fixture
def home(ssh_home: Path) -> Path:
    return ssh_home


def reach(home: Path, server: Sshd) -> None:
    (home / ".ssh" / "config").write_text(server.host_block("login"))


@pytest.fixture
def job(tmp_path: Path, home: Path) -> JobRecord:
    """The record of a job on ``login``, its folder there with what it left, its copied code."""
    store = Store()
    record = new_record(store, "slurm", tmp_path)
    folder = tmp_path / "there" / record.id
    record = store.save(replace(record, host="login", folder=str(folder), workdir=f"{folder}/code"))
    code = folder / "code" / "old\n\u00fc \u202e"
    code.mkdir(parents=True)
    (folder / "runner").mkdir()
    (folder / "runner" / "x.py").write_text("ours\n")
    (code / "train.py").write_text("the user's own\n")
    os.utime(code / "train.py", (1, 1))
    (folder / "job.sh").write_text("#!/bin/bash\n")
    os.utime(folder / "job.sh", (1000, 1000))
    (folder / "out.log").write_bytes(os.urandom(3 << 20))
    (code / os.fsdecode(b"made \xff")).write_text("by the job\n")
    (folder / "tool").write_text("run me\n")
    (folder / "tool").chmod(0o755)
    (folder / "link").symlink_to("/etc/passwd")
    return record


def files_below(folder: Path) -> set[str]:
    return {os.fsdecode(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir()}


def test_what_a_job_left_comes_home(job: JobRecord, plain_sshd: Sshd, home: Path, tmp_path: Path) -> None:
    reach(home, plain_sshd)
    answer = hpclaunch("fetch", job.id, cwd=home)
    assert answer.returncode == 0, answer.stderr
    names = [line.partition("  ")[0] for line in answer.stdout.splitlines()]
    assert names[1:] == ["job.sh", "out.log", "tool"], "in the order of their names, the large one, too"
    here = home / job.id
    made = os.fsdecode(b"code/old\n\xc3\xbc \xe2\x80\xae/made \xff")
    assert files_below(here) == {"job.sh", "out.log", "tool", made}
    assert (here / "out.log").read_bytes() == (Path(job.folder) / "out.log").read_bytes()
    assert (here / "job.sh").stat().st_mtime == 1000
    assert stat.S_IMODE((here / "tool").stat().st_mode) & 0o100
    assert f"left out: {job.folder}/link" in answer.stderr
    assert "\u202e" not in answer.stdout + answer.stderr
    again = hpclaunch("fetch", job.id, cwd=home)
    assert (again.returncode, "exists already, nothing was brought" in again.stderr) == (3, True)
    (here / "tool").write_text("changed here\n")
    forced = hpclaunch("fetch", job.id, "--force", "--json", cwd=home)
    document = msgspec.json.decode(forced.stdout, type=FetchDocument)
    assert (document.host, document.folder, len(document.files)) == ("login", str(here), 4)
    assert (here / "tool").read_text() == "run me\n"


def test_named_paths_begin_at_the_working_folder(job: JobRecord, plain_sshd: Sshd, home: Path) -> None:
    reach(home, plain_sshd)
    outside = Path(job.folder).parent / "data"
    outside.mkdir()
    (outside / "a").write_text("a\n")
    answer = hpclaunch(
        "fetch", job.id, "old\n\u00fc \u202e", str(outside), "../tool", "--to", "to it's", cwd=home
    )
    assert answer.returncode == 0, answer.stderr
    names = {name.rpartition("/")[2] for name in files_below(home / "to it's")}
    assert names == {"train.py", os.fsdecode(b"made \xff"), "a", "tool"}
    assert (home / "to it's" / "data" / "a").exists()
    missing = hpclaunch("fetch", job.id, "nosuch", "--to", "x", cwd=home)
    assert (missing.returncode, "nosuch is not on login" in missing.stderr) == (3, True)
    assert not (home / "x").exists()


@pytest.fixture
def lying(start_sshd: Callable[..., Sshd], home: Path, tmp_path: Path) -> Callable[..., None]:
    """A host whose find is a fake that prints what it is told to."""

    def start(*entries: tuple[str, str, str, str, str]) -> None:
        programs = tmp_path / "bin"
        programs.mkdir()
        text = base64.b64encode(
            "".join(f"{field}\0" for entry in entries for field in entry).encode()
        ).decode()
        (programs / "find").write_text(f"#!/bin/sh\n# a fake find\necho {text} | base64 -d\n")
        (programs / "find").chmod(0o755)
        reach(home, start_sshd(variables={"PATH": f"{programs}:{os.environ['PATH']}"}))

    return start


@pytest.mark.parametrize(
    "path", ["{0}/../../../evil", "/etc/evil", "evil", "{0}", "{0}x/evil", "{0}/a/../../evil", "../evil"]
)
def test_a_hostile_name_writes_nothing(
    path: str, job: JobRecord, lying: Callable[..., None], home: Path, tmp_path: Path
) -> None:
    lying(("f", "1", "1", "644", f"{job.folder}/job.sh"), ("f", "5", "1", "644", path.format(job.folder)))
    answer = hpclaunch("fetch", job.id, cwd=home)
    assert (answer.returncode, "Traceback" in answer.stderr) == (4, False), answer.stderr
    assert "nothing was brought" in answer.stderr
    assert not list(tmp_path.rglob("evil"))
    assert not (home / job.id).exists()


@pytest.mark.parametrize(
    "entry", [("f", "many", "1", "644"), ("f", "9", "1", "rwx"), ("f", "9", "soon", "644"), ("f",)]
)
def test_an_answer_that_is_no_list_is_refused(
    entry: tuple[str, ...], job: JobRecord, lying: Callable[..., None], home: Path
) -> None:
    lying((*entry, f"{job.folder}/job.sh"))
    answer = hpclaunch("fetch", job.id, cwd=home)
    assert (answer.returncode, "cannot be read" in answer.stderr) == (4, True), answer.stderr


def test_a_link_here_leads_nothing_outside(
    job: JobRecord, plain_sshd: Sshd, home: Path, tmp_path: Path
) -> None:
    reach(home, plain_sshd)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "out.log").write_text("mine\n")
    (home / "to").mkdir()
    (home / "to" / "code").symlink_to(tmp_path / "outside")
    (home / "to" / "out.log").symlink_to(tmp_path / "outside" / "out.log")
    with connect("login") as host:
        listing = list_results(host, job, ())
        with pytest.raises(BadInputError, match="nothing was brought"):
            fetch(host, listing.files, home / "to", replace=True)
    assert (tmp_path / "outside" / "out.log").read_text() == "mine\n"
    assert files_below(tmp_path / "outside") == {"out.log"}


def test_a_file_is_whole_or_not_there_and_never_longer_than_announced(
    job: JobRecord, lying: Callable[..., None], home: Path
) -> None:
    lying(
        ("f", "3", "1", "644", f"{job.folder}/job.sh"),
        ("f", "99999999999999", "1e300", "644", f"{job.folder}/tool"),
    )
    with connect("login") as host:
        listing = list_results(host, job, ())
        with pytest.raises(RefusedError, match="only 7 of 99999999999999 bytes"):
            fetch(host, listing.files, home / "to")
    assert (home / "to" / "job.sh").read_text() == "#!/"
    assert files_below(home / "to") == {"job.sh"}
