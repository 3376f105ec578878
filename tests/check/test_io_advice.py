"""Advice on reading: from recorded answers of Lustre's tools, and on this machine's own file system.

There is no Lustre here: GETSTRIPE and QUOTA are answers as Lustre's own pages and manual show them.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.check.io_facts import (
    LIMIT,
    Census,
    IoFacts,
    LocalStorage,
    Stripes,
    _values,
    advise_io,
    parse_stripes,
    take_census,
)
from hpclaunch.errors import BadInputError
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here
from tests.test_case_texts import CASES, fields

GB = 10**9
# wiki.lustre.org, Configuring Lustre File Striping: of a folder, and of a file.
GETSTRIPE_FOLDER = "/mnt/testfs\nstripe_count:  2 stripe_size:   4194304 pattern:       0 stripe_offset: -1\n"
GETSTRIPE_FILE = """\
/mnt/testfs/file
lmm_stripe_count:  1
lmm_stripe_size:   1048576
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: 3
\tobdidx\t\t objid\t\t objid\t\t group
\t     3\t             2\t          0x2\t             0
"""
# A progressive layout, as man lfs-getstripe shows its parts.
GETSTRIPE_PFL = """\
  lcm_layout_gen:    0
  lcm_mirror_count:  1
  lcm_entry_count:   2
    lcme_id:             N/A
    lcme_extent.e_start: 0
    lcme_extent.e_end:   1073741824
      stripe_count:  1       stripe_size:   1048576       pattern:       raid0       stripe_offset: -1
    lcme_id:             N/A
    lcme_extent.e_start: 1073741824
    lcme_extent.e_end:   EOF
      stripe_count:  8       stripe_size:   4194304       pattern:       raid0       stripe_offset: -1
"""
# man lfs-quota, -q: used kbytes, quota, limit, grace, files, quota, limit, grace.
QUOTA = "     /mnt/testfs  18000000  20000000 20971520       -   99000       0  100000       -\n"


def test_stripes_are_read_from_a_folder_a_file_and_a_progressive_layout() -> None:
    assert parse_stripes(GETSTRIPE_FOLDER) == Stripes(count=2, size=4 << 20)
    assert parse_stripes(GETSTRIPE_FILE) == Stripes(count=1, size=1 << 20)
    assert parse_stripes(GETSTRIPE_PFL) == Stripes(count=1, size=1 << 20, progressive=True)
    assert parse_stripes("") is None
    assert parse_stripes("/x has no stripe info\n") is None


# --- the count --------------------------------------------------------------------------------------------


def test_files_folders_and_sizes_are_counted_and_links_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "large").write_bytes(b"x" * (2 << 20))
    for number in range(5):
        (tmp_path / "a" / "b" / str(number)).write_bytes(b"x")
    (tmp_path / "link").symlink_to("/")
    found = take_census(str(tmp_path), 60)
    assert (found.files, found.folders, found.bytes) == (6, 3, (2 << 20) + 5)
    assert (found.small_files, found.large_files, found.most_in_a_folder) == (5, 0, 5)
    assert (found.largest, found.largest_bytes) == (str(tmp_path / "a" / "large"), 2 << 20)
    assert found.complete
    one = take_census(str(tmp_path / "a" / "large"), 60)
    assert (one.files, one.folders, one.bytes) == (1, 0, 2 << 20)
    with pytest.raises(BadInputError, match="does not exist"):
        take_census(str(tmp_path / "none"), 60)
    with pytest.raises(BadInputError, match="/dev/zero: neither a folder nor a file"):
        take_census("/dev/zero", 60)


def test_the_count_stops_when_its_time_is_over_and_says_so(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "file").touch()
    ticks = itertools.count()
    found = take_census(str(tmp_path), 4.5, clock=lambda: float(next(ticks)))
    assert not found.complete
    assert 0 < found.files < 10
    ticks = itertools.count()
    assert take_census(str(tmp_path), 11.5, clock=lambda: float(next(ticks))).complete, "the last one counts"


# --- the advice --------------------------------------------------------------------------------------------


MANY_SMALL = Census(
    files=1_281_167, folders=1000, bytes=138 * GB, small_files=1_270_000, largest="/d/n/x.jpg"
)
ONE_LARGE = Census(
    files=1, folders=1, bytes=300 * GB, large_files=1, largest="/d/all.h5", largest_bytes=300 * GB
)


def facts(**changed: Any) -> IoFacts:
    usual: dict[str, Any] = {
        "path": "/d",
        "is_folder": True,
        "census": MANY_SMALL,
        "file_system": "lustre",
        "mount": "/",
        "stripes": Stripes(count=1, size=1 << 20),
        "largest_stripes": Stripes(count=1, size=1 << 20),
        "free_bytes": 1000 * GB,
        "free_files": 10**9,
        "local": LocalStorage(path="/local", where="nodes of x"),
    }
    return IoFacts(**{**usual, **changed})


def commands(found: IoFacts) -> dict[str, tuple[str, ...]]:
    return {one.name: one.commands for one in advise_io(found)}


def test_many_small_files_are_packed_and_staged() -> None:
    assert commands(facts()) == {
        "pack": ("mksquashfs /d /d.sqsh", "tar -cf /d.tar -C /d ."),
        "stage": ("hpclaunch submit --stage /d ...",),
        "shard": ("hpclaunch submit ... mnist -- --reading shard",),
    }
    few = msgspec_replace(MANY_SMALL, files=LIMIT.many_files - 1, small_files=LIMIT.many_files - 1)
    assert "pack" not in commands(facts(census=few))


def test_small_files_get_one_stripe_and_large_ones_several() -> None:
    wide = commands(facts(stripes=Stripes(count=8, size=1 << 20)))
    assert wide["stripe"] == ("lfs setstripe -c 1 /d",)
    large = commands(facts(census=ONE_LARGE))
    assert large["stripe"] == ("lfs setstripe -c 8 -S 4M /d", "lfs migrate -c 8 -S 4M /d/all.h5")
    assert "stripe" not in commands(facts(census=ONE_LARGE, largest_stripes=Stripes(count=8, size=1 << 22)))
    layout = parse_stripes(GETSTRIPE_PFL)
    assert "stripe" not in commands(facts(census=ONE_LARGE, stripes=layout, largest_stripes=layout))
    assert "stripe" not in commands(facts(census=ONE_LARGE, stripes=None, largest_stripes=None))


def test_the_sites_own_advice_is_cited_with_its_source() -> None:
    found = advise_io(
        facts(census=ONE_LARGE, site="lumi-g", site_striping="count a factor", site_source="https://site/x")
    )
    (stripe,) = [one for one in found if one.name == "stripe"]
    assert "lumi-g advises: count a factor" in stripe.why
    assert stripe.source == "https://site/x"
    assert all(one.source for one in found)


@in_one_test(
    "local, text",
    [
        (LocalStorage(path="/local", where="nodes of x"), "stage the data to the nodes' own storage"),
        (LocalStorage(path="/tmp", where="nodes of x", kind="none"), "do not stage so much"),
        (
            LocalStorage(path="/tmp", where="this machine", kind="tmpfs", free_bytes=500 * GB),
            "do not stage so much",
        ),
        (LocalStorage(path="/tmp", where="this machine", kind="xfs", free_bytes=500 * GB), "stage the data"),
        (LocalStorage(path="/tmp", where="this machine", kind="xfs", free_bytes=140 * GB), None),
    ],
)
def test_staging_depends_on_the_storage_of_the_nodes(local: LocalStorage, text: str | None) -> None:
    staging = [one.text for one in advise_io(facts(local=local)) if one.name == "stage"]
    assert len(staging) == (text is not None)
    assert text is None or staging[0].startswith(text)


def test_what_is_small_goes_into_memory_and_the_rest_does_not() -> None:
    memory = LocalStorage(path="/tmp", where="nodes of x", kind="none")
    small = advise_io(facts(local=memory, census=msgspec_replace(MANY_SMALL, bytes=GB)))
    (stage,) = [one for one in small if one.name == "stage"]
    assert stage.text.startswith("stage only what is small")
    assert stage.commands
    assert commands(facts(local=memory))["stage"] == ()


def test_what_a_site_advises_stands_next_to_no_other_command() -> None:
    """A site that says to leave the default layout alone; guides of other sites are named as such."""
    default = facts(
        stripes=Stripes(count=8, size=1 << 20), site="frontier", site_striping="leave the default"
    )
    found = {one.name: one for one in advise_io(default)}
    assert found["stripe"].commands == ()
    assert found["stripe"].text == "stripe new files here as frontier advises"
    assert "not frontier's own" in found["pack"].source
    assert "not frontier's own" in found["stage"].source


def test_a_count_that_stopped_early_promises_no_room() -> None:
    early = msgspec_replace(MANY_SMALL, complete=False)
    found = advise_io(facts(census=early))
    assert "stage" not in {one.name for one in found}
    assert "at least 1,281,167 files" in found[0].why


def test_quotas_that_a_copy_would_break_come_first() -> None:
    found = advise_io(facts(free_files=1000, free_bytes=GB))
    assert [one.name for one in found][:2] == ["room", "room"]
    assert "1,000 more files may be made" in found[0].why
    assert "954 MiB are left" in found[1].why


def test_data_on_a_local_disk_stay_where_they_are() -> None:
    """For a job of a site the same files are judged as on that site's file system."""
    census = msgspec_replace(MANY_SMALL, files=20_000, bytes=GB)
    here = LocalStorage(path="/tmp", where="this machine", kind="xfs", free_bytes=500 * GB)
    found = advise_io(facts(file_system="xfs", stripes=None, census=census, local=here))
    assert [one.name for one in found] == ["nothing"]
    found = advise_io(facts(file_system="ext4", stripes=None, census=census, site="x"))
    assert [one.name for one in found] == ["pack", "stage"]


def msgspec_replace(census: Census, **changed: Any) -> Census:
    import msgspec

    return msgspec.structs.replace(census, **changed)


# --- the command -------------------------------------------------------------------------------------------


def advise(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return hpclaunch_here("advise", "io", *words, environment=environment)


def test_the_command_reads_this_machine(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x" * 1000)
    done = advise(str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}: 1 file in 1 folder, 1000 bytes" in done.stdout
    assert "file system: " in done.stdout
    assert "source: " in done.stdout
    document = json.loads(advise(str(tmp_path), "--json").stdout)
    assert document["facts"]["census"]["files"] == 1
    assert document["advice"][0].keys() >= {"name", "text", "why", "source"}


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = advise(str(tmp_path / "none"))
    assert done.returncode == 3
    assert "does not exist" in done.stderr


FAKE_LFS = """#!/bin/sh
# fake: prints recorded answers
case $1 in
  getstripe) [ "$2" = -d ] && cat "$FAKE_LFS_ANSWERS/folder" || cat "$FAKE_LFS_ANSWERS/file" ;;
  quota) cat "$FAKE_LFS_ANSWERS/quota" ;;
esac
"""


def test_recorded_answers_of_lfs_lead_to_advice_with_the_sites_source(tmp_path: Path) -> None:
    answers = {"folder": GETSTRIPE_FOLDER, "file": GETSTRIPE_FILE, "quota": QUOTA}
    (tmp_path / "bin").mkdir()
    for name, text in answers.items():
        (tmp_path / name).write_text(text)
    lfs = tmp_path / "bin" / "lfs"
    lfs.write_text(FAKE_LFS)
    lfs.chmod(0o755)
    data = tmp_path / "data"
    data.mkdir()
    with (data / "large").open("wb") as file:
        file.truncate(5 * GB)  # sparse: takes no room
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    words = (str(data), "--site", "lumi-g", "--json")
    document = json.loads(advise(*words, PATH=path, FAKE_LFS_ANSWERS=str(tmp_path)).stdout)
    read = document["facts"]
    assert read["file_system"] == "lustre"
    assert read["stripes"] == {"count": 2, "size": 4 << 20, "progressive": False}
    assert (read["free_bytes"], read["free_files"]) == ((20971520 - 18000000) * 1024, 1000)
    assert read["quota_read"] is True
    by_name = {one["name"]: one for one in document["advice"]}
    assert by_name["stripe"]["commands"] == [
        f"lfs setstripe -c 8 -S 4M {data}",
        f"lfs migrate -c 8 -S 4M {data / 'large'}",
    ]
    assert by_name["stripe"]["source"] == "https://docs.lumi-supercomputer.eu/storage/"
    assert "lumi-g advises" in by_name["stripe"]["why"]
    assert "2.83 GiB are left for 4.66 GiB" in by_name["room"]["why"]
    assert by_name["stage"]["text"].startswith("do not stage so much")


def test_the_texts_of_advice_use_the_values_that_they_get() -> None:
    used = set().union(*map(fields, CASES["check/io_advice.yaml"].values()))
    assert used == _values(facts()).keys()
