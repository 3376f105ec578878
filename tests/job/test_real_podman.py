"""The words of a rank in podman-hpc, with a real podman below: what the fake claims, and what it cannot.

HPCLAUNCH_TEST_PODMAN is the path of podman. podman-hpc is a script around it (github.com/NERSC/podman-hpc),
here one that leaves out the options of NERSC's modules.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.job.test_run_fake_containers import (
    MODULES,
    SEES,
    environment_of,
    hpclaunch,
    in_runtime,
    root,
    run,
)

pytestmark = [pytest.mark.slow, pytest.mark.long]

PODMAN = os.environ["HPCLAUNCH_TEST_PODMAN"]
PROGRAMS = ("bash", "cat", "grep", "mkdir")
IMAGE = "localhost/hpclaunch-test:1"
WRAPPER = """\
#!/bin/bash
words=()
for word in "$@"; do
  case $word in --gpu | --nccl) ;; *) words+=("$word") ;; esac
done
exec {podman} "${{words[@]}}"
"""
__all__ = ["root"]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a folder with podman-hpc, and an image of this machine's bash, whose PATH is its own."""
    folder = tmp_path_factory.mktemp("podman")
    rootfs = folder / "rootfs"
    for name in PROGRAMS:
        program = shutil.which(name)
        assert program
        libraries = re.findall(r"/\S+", subprocess.check_output(["ldd", program], text=True))
        for source, target in [
            (program, rootfs / "made" / name),
            *((each, rootfs / each[1:]) for each in libraries),
        ]:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    (rootfs / "made" / "here").write_text("of the image\n")
    subprocess.run(["tar", "-C", rootfs, "-cf", folder / "rootfs.tar", "."], check=True)

    config = (
        folder / "containers.conf"
    )  # podman's own limits are above those that root may have in a container
    config.write_text('[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n')
    storage = f"--root {folder}/storage --runroot {folder}/run --storage-driver vfs"
    podman = f"env CONTAINERS_CONF={config} {PODMAN} {storage} --cgroup-manager cgroupfs --runtime runc"
    wrapper = folder / "bin" / "podman-hpc"
    wrapper.parent.mkdir()
    wrapper.write_text(WRAPPER.format(podman=podman))
    wrapper.chmod(0o755)
    changes = ("--change", "ENV PATH=/made", "--change", "ENV LD_LIBRARY_PATH=/of/image")
    subprocess.run([*podman.split(), "import", *changes, folder / "rootfs.tar", IMAGE], check=True)
    yield wrapper.parent
    subprocess.run([*podman.split(), "rm", "--all", "--force"], check=False)
    as_its_owner = [*podman.split(), "unshare"] if os.getuid() else []
    subprocess.run([*as_its_owner, "rm", "-rf", folder / "storage"], check=True)


def script_of(root: Path, program: str, *more: str) -> str:
    """The script of a job with one rank in a container of podman-hpc."""
    words = (*in_runtime("podman-hpc", "perlmutter", root), "--container", IMAGE, *more)
    program_words = ("--", "/made/bash", "-c", program)
    return hpclaunch(
        *("submit", *words, "--tasks-per-node", "4", "--dry-run", *program_words), cwd=root / "scratch/p1/me"
    )


def test_a_rank_sees_the_jobs_folders_and_variables_and_the_images_own(root: Path, first: Path) -> None:
    cwd = root / "scratch/p1/me"
    program = SEES + '\necho "$LD_LIBRARY_PATH, $PWD, $HOME"; grep Cpus_allowed_list /proc/self/status'
    binds = ("--container-bind", f"{root}/more:/more", "--container-bind", f"{root}/pfs")
    script = script_of(root, program, *binds, "--env", "GIVEN=it's me\nand 'more'")
    usual = os.sched_getaffinity(0)
    cpu = max(usual)
    os.sched_setaffinity(0, {cpu})
    try:
        done = run(
            script, root, cwd, FIRST=str(first), SCRATCH=str(root), LD_LIBRARY_PATH="", TMPDIR=str(root)
        )
    finally:
        os.sched_setaffinity(0, usual)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-7:] == [
        "read inside",
        "of the image",
        "named",
        "0 of 4, GPUs 0,1,2,3, it's me",
        "and 'more', /made",
        f"/of/image, {cwd}, /",
        f"Cpus_allowed_list:\t{cpu}",
    ]
    (made,) = root.glob("**/hpclaunch-12*/made")
    assert made.stat().st_uid == os.getuid()


def test_its_exit_status_is_that_of_the_rank(root: Path, first: Path) -> None:
    script = script_of(root, "exit 7")
    assert run(script, root, root / "scratch/p1/me", FIRST=str(first), SCRATCH=str(root)).returncode == 7


def test_a_signal_before_the_walltime_reaches_the_program(root: Path, first: Path) -> None:
    waits = """
trap 'echo > "$HPCLAUNCH_JOB_FOLDER/made"; exit 0' USR1
echo > "$HPCLAUNCH_JOB_FOLDER/waits"
for ((i = 0; i < 300; i++)); do read -r -t 0.2 < <(:) || :; cat /proc/loadavg > /dev/null; done
exit 9
"""
    cwd = root / "scratch/p1/me"
    environment = environment_of(root, cwd, FIRST=str(first), SCRATCH=str(root))
    words = ["bash", "-c", MODULES + script_of(root, waits)]
    with subprocess.Popen(words, cwd=cwd, env=environment) as job:
        until = time.monotonic() + 60
        while not [*root.glob("**/hpclaunch-12*/waits")]:
            assert time.monotonic() < until
            time.sleep(0.1)
        (rank,) = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        os.kill(int(rank), signal.SIGUSR1)
        assert job.wait(timeout=60) == 0
    assert [*root.glob("**/hpclaunch-12*/made")]
