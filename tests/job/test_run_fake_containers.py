"""A program in a container opens the files of the job: sites' scripts, run with fakes that enforce binds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.in_process import hpclaunch_here
from tests.remote.fake_torch import make_fake_torch
from tests.testbed.second_user import SecondUser

pytestmark = pytest.mark.slow

FAKES = Path(__file__).parents[1] / "fakes" / "fake_containers"
MODULES = """
module() { case "$*" in
  "load lumi-aif-singularity-bindings") export SINGULARITY_BIND=$SITE/opt:/site/opt ;;
  "load apptainer") export APPTAINER_BIND=$SITE/opt:/site/opt ;;
  "load NRIS/GPU") export APPTAINER_BIND=$SITE/opt:/site/opt EBROOTNCCL=$SITE/nccl ;;
esac; }
conda() { :; }
scontrol() { echo n1; }
export -f module conda scontrol
"""
# What the profiles name and this machine lacks: file systems, and folders of the fabric.
OURS = """\
schema: 1
name: {site}-here
description: {site}, with file systems of this test
part_of: {site}
storage:
  scratch: {{path: {root}/scratch/$PROJECT}}
  nowhere: {{path: /nosuch/$PROJECT}}
software:
  container:
    runtime: {runtime}
    binds: [{binds}]
    modules: {modules}
    binds_storage: false
"""
SITES = {
    "lumi-g": ("singularity", "[module use /appl/m, module load lumi-aif-singularity-bindings]"),
    "olivia": ("apptainer", "[module load NRIS/GPU]"),
    "polaris": ("apptainer", "[module use /soft/modulefiles, module load apptainer]"),
    "daint": ("container-engine", "[]"),
    "clariden": ("container-engine", "[]"),
    "santis": ("container-engine", "[]"),
}
ALPS = ("daint", "clariden", "santis")
ACCOUNTS = {"lumi-g": "project_465000001", "olivia": "nn1234k"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine whose /scratch/PROJECT is a link, as LUMI's is; its folder has a blank in its name."""
    real = tmp_path / "pfs" / "the project"
    (real / "me").mkdir(parents=True)
    (real / "me" / "data.txt").write_text("read inside\n")
    (real / "shared.txt").write_text("of the project\n")
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "p1").symlink_to(real)
    for folder in ("image/made", "site/opt", "site/nccl", "state"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "site" / "opt" / "mpi").write_text("the site's\n")
    (tmp_path / "image" / "made" / "here").write_text("of the image\n")
    return tmp_path


def profile(root: Path, site: str) -> Path:
    runtime, modules = SITES[site]
    file = root / f"{site}-here.yaml"
    binds = f"{root}/site/nccl, $EBROOTNOTHING:/x"
    file.write_text(OURS.format(site=site, root=root, runtime=runtime, binds=binds, modules=modules))
    return file


def hpclaunch(*words: str, cwd: Path) -> str:
    line = [sys.executable, "-m", "hpclaunch", *words]
    answer = subprocess.run(line, capture_output=True, text=True, cwd=cwd)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def saved(root: Path, *words: str, cwd: Path) -> str:
    """The script of ``submit --dry-run``, whose files are there, too."""
    save = ("--dry-run", "--save", str(root / "saved"))
    return hpclaunch("submit", *words[: words.index("--")], *save, *words[words.index("--") :], cwd=cwd)


def run(script: str, root: Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a batch system does, with fakes for launcher, modules and runtime.

    Its output is returned, also where the script writes its log itself.
    """
    done = subprocess.run(
        ["bash", "-c", MODULES + script],
        cwd=cwd,
        env=environment_of(root, cwd, **more),
        capture_output=True,
        text=True,
    )
    for log in root.glob("**/hpclaunch-12*/out.log"):
        done.stdout = log.read_text()
        done.stderr += done.stdout
        log.unlink()
    return done


def environment_of(root: Path, cwd: Path, **more: str) -> dict[str, str]:
    """What a batch system gives a script; ``FIRST`` is a folder of programs that go before the fakes."""
    (root / "nodes").write_text("n1\n")
    return {
        **os.environ,
        **more,
        "PATH": os.pathsep.join([more.get("FIRST", str(FAKES)), str(FAKES), os.environ["PATH"]]),
        "PWD": str(cwd),  # a shell keeps the name by which a link was used
        "HOME": str(root / "state"),
        "SITE": str(root / "site"),
        "PROJECT": "p1",
        "SLURM_JOB_ID": "12",
        "SLURM_SUBMIT_DIR": str(root / "state"),
        "PBS_JOBID": "12.polaris-pbs-01",
        "PBS_O_WORKDIR": str(cwd),
        "PBS_NODEFILE": str(root / "nodes"),
    }


PROGRAM = """
cat data.txt "$0/scratch/p1/shared.txt" "$(pwd -P)/data.txt" /made/here "$@"
echo > "$HPCLAUNCH_JOB_FOLDER/made"
"""


@pytest.mark.parametrize("where", ["by the link", "by the real path"])
@pytest.mark.parametrize("site", SITES)
def test_a_program_opens_files_of_the_working_folder_and_of_the_project(
    site: str, where: str, root: Path
) -> None:
    cwd = root / ("scratch/p1/me" if where == "by the link" else "pfs/the project/me")
    account = ("--account", ACCOUNTS.get(site, "g123"))
    words = ("--site", str(profile(root, site)), *account, "--container", str(root / "image"), "--dry-run")
    outer = () if site in ALPS else ("/site/opt/mpi",)
    more = root / "more"
    more.mkdir()
    (more / "file").write_text("named\n")
    bind = ("--container-bind", f"{more}:/more it's")
    program = ("--", "bash", "-c", PROGRAM, str(root), *outer, "/more it's/file")
    script = hpclaunch("submit", *words, *bind, "--binding", "off", *program, cwd=cwd)
    done = run(script, root, cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [
        "read inside",
        "of the project",
        "read inside",
        "of the image",
        *["the site's"] * len(outer),
        "named",
    ]
    assert done.stdout.splitlines()[-len(told) :] == told
    assert list(root.glob("**/hpclaunch-12*/made")), "the job's folder was not seen"


OPTIONS = {
    "shifter": ["--module=gpu,nccl-plugin"],
    "podman-hpc": ["--gpu", "--nccl"],
    "pyxis": ["--container-mount-home"],
}
SEES = """
cat data.txt /made/here /more/file
echo "$RANK of $WORLD_SIZE, GPUs $CUDA_VISIBLE_DEVICES, $GIVEN, ${PATH%%:*}"
mkdir -p "$HPCLAUNCH_JOB_FOLDER"
echo > "$HPCLAUNCH_JOB_FOLDER/made"
"""


def image_of(root: Path) -> dict[str, str]:
    """Variables of the fakes: the image, its own variables, and what Shifter mounts at a site."""
    mounts = (root / each for each in ("pfs", "scratch", "state", "more", "saved"))
    return {
        "FAKE_CONTAINER_IMAGE": str(root / "image"),
        "FAKE_IMAGE_ENV": "PATH=/made:/usr/sbin:/usr/bin:/sbin:/bin",
        "FAKE_SHIFTER_MOUNTS": ",".join(str(each) for each in mounts if each.exists()),
        "SCRATCH": str(root),
    }


def in_runtime(runtime: str, site: str, root: Path) -> tuple[str, ...]:
    """The options of a job in a container of that runtime."""
    (root / "more").mkdir(exist_ok=True)
    (root / "more" / "file").write_text("named\n")
    text = OURS.partition("software:")[0].format(site=site, root=root)
    facts = json.dumps({"runtime": runtime, "options": OPTIONS[runtime]})
    software = f"software: {{container: {facts}}}\n" if site == "perlmutter" else ""
    (root / f"{site}-here.yaml").write_text(text + software)
    words = (
        "--site",
        str(root / f"{site}-here.yaml"),
        "--container",
        "docker://a.example/b:1",
        "--nodes",
        "1",
    )
    named = () if software else ("--container-runtime", runtime)
    return (*words, "--account", "m1", *named)


@pytest.mark.parametrize(
    ("runtime", "site"), [*((runtime, "perlmutter") for runtime in OPTIONS), ("pyxis", "generic-slurm")]
)
def test_other_runtimes_show_the_jobs_folders_and_variables(runtime: str, site: str, root: Path) -> None:
    """Podman-hpc passes only the variables that are named; Shifter sees what the site mounts."""
    cwd = root / "scratch/p1/me"
    words = (
        *in_runtime(runtime, site, root),
        "--container-bind",
        f"{root}/more:/more",
        "--env",
        "GIVEN=it's me",
    )
    here = ("--container-bind", f"{root}/pfs")  # Shifter has it, and mounts nothing onto it
    script = hpclaunch(
        *("submit", *words, *here, "--tasks-per-node", "4", "--dry-run", "--", "bash", "-c", SEES),
        cwd=cwd,
    )
    done = run(script, root, cwd, **image_of(root))
    assert done.returncode == 0, done.stdout + done.stderr
    assert site != "perlmutter" or all(each in script for each in OPTIONS[runtime])
    sees = f"0 of 4, GPUs {'0,1,2,3' if site == 'perlmutter' else ''}, it's me, /made"
    assert done.stdout.splitlines()[-4:] == ["read inside", "of the image", "named", sees]
    assert list(root.glob("**/hpclaunch-12*/made"))
    kept = (
        script.replace("compgen -e", "true")
        .replace("HPCLAUNCH_BINDS+=,$real", ": ")
        .replace(f",{root}/pfs", "")
    )
    bare = run(kept.replace(f":{root}/pfs", ""), root, cwd, **image_of(root))
    assert ("read inside" in bare.stdout) == (runtime == "shifter"), "the fake keeps nothing out"


@pytest.mark.parametrize("runtime", OPTIONS)
def test_steps_are_recorded_in_other_runtimes(runtime: str, root: Path) -> None:
    """The start-up file of Python is found by a variable that goes along."""
    cwd = root / "scratch" / "p1" / "me"
    make_fake_torch(cwd)
    (cwd / "train.py").write_text(TRAIN)
    words = (*in_runtime(runtime, "perlmutter", root), "--profile", "3", "--profile-after", "2")
    script = saved(root, *words, "--tasks-per-node", "1", "--", "/usr/bin/python3", "train.py", cwd=cwd)
    done = run(script, root, cwd, **image_of(root))
    assert done.returncode == 0, done.stdout + done.stderr
    (trace,) = root.glob("**/hpclaunch-12/profile/trace-rank0.json")
    assert trace.read_text() == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("runtime", OPTIONS)
def test_imports_are_tried_in_the_container(runtime: str, root: Path) -> None:
    cwd = root / "scratch" / "p1" / "me"
    (root / "image" / "made" / "of_image.py").touch()
    (cwd / "train.py").write_text("import of_image\nprint('imported')\n")
    words = (*in_runtime(runtime, "perlmutter", root), "--check-imports", "--tasks-per-node", "1")
    script = saved(root, *words, "--", "/usr/bin/python3", "train.py", cwd=cwd)
    there = {**image_of(root), "FAKE_IMAGE_ENV": "PYTHONPATH=/made"}
    done = run(script, root, cwd, **there)
    assert done.stdout.splitlines()[-1:] == ["imported"], done.stdout + done.stderr
    (root / "image" / "made" / "of_image.py").unlink()
    done = run(script, root, cwd, **there)
    assert done.returncode == 1
    (reason,) = root.glob("**/hpclaunch-12*/reason")
    assert "of_image" in reason.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--site", "perlmutter", "--account", "m1", "--container", "my.sif"),
            "my.sif cannot be started by shifter; name one",
        ),
        (
            (
                "--site",
                "perlmutter",
                "--account",
                "m1",
                "--container",
                "a/b:1",
                "--container-runtime",
                "apptainer",
            ),
            "perlmutter has shifter and podman-hpc, not apptainer",
        ),
        (
            ("--site", "./bare.yaml", "--account", "nn1234k", "--container", "a.sif"),
            "profile of bare knows no container runtime",
        ),
        (("--site", "generic-slurm", "--container-runtime", "pyxis"), "the job has no container"),
        (
            ("--site", "generic-pbs", "--container", "a/b", "--container-runtime", "pyxis"),
            "pyxis is an option of srun, and ranks are started by mpiexec here",
        ),
    ],
)
def test_a_runtime_that_the_site_has_not_is_refused(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    bare = "schema: 1\nname: bare\ndescription: ours\npart_of: betzy\nsoftware: {container: null}\n"
    (tmp_path / "bare.yaml").write_text(bare)
    answer = hpclaunch_here("submit", *words, "--dry-run", "--", "./a", folder=tmp_path)
    assert answer.returncode == 3
    assert said in answer.stderr


def test_a_runtime_that_nothing_documents_is_said(tmp_path: Path) -> None:
    words = ("submit", "--site", "generic-slurm", "--container", "docker://a/b", "--dry-run", "--", "./a")
    guessed = hpclaunch_here(*words, folder=tmp_path)
    said = "no container runtime is documented for generic-slurm: the script starts apptainer; "
    assert said in guessed.stderr
    assert "apptainer exec docker://a/b" in guessed.stdout
    named = hpclaunch_here(*words[:-3], "--container-runtime", "pyxis", *words[-3:], folder=tmp_path)
    assert '--container-image="a/b"' in named.stdout


def test_with_a_container_the_modules_stay_out_that_its_image_replaces(tmp_path: Path) -> None:
    words = ("--site", "lumi-g", "--account", "project_465000001", "--container", "/x/y.sif", "--dry-run")
    script = hpclaunch_here("submit", *words, "--", "./a", folder=tmp_path).stdout
    assert "cray-python" not in script
    assert "module load lumi-aif-singularity-bindings" in script


def test_without_the_binds_the_fake_shows_nothing(root: Path) -> None:
    """The test above can fail."""
    cwd = root / "scratch" / "p1" / "me"
    words = ("--site", str(profile(root, "lumi-g")), "--account", ACCOUNTS["lumi-g"], "--dry-run")
    script = hpclaunch(
        *("submit", *words, "--container", str(root / "image"), "--binding", "off", "--", "cat", "data.txt"),
        cwd=cwd,
    )
    kept = "\n".join(line for line in script.splitlines() if "_BIND+=,$real" not in line)
    done = run(kept, root, cwd)
    assert done.returncode != 0
    assert "data.txt: No such file or directory" in done.stderr


TRAIN = """
import torch.optim.optimizer as optimizers
optimizer = optimizers.SGD()
for _ in range(9):
    optimizer.step()
"""


@pytest.mark.parametrize("site", ["lumi-g", "polaris", "daint"])
def test_steps_of_a_program_in_a_container_are_recorded(site: str, root: Path) -> None:
    """The start-up file is among the job's files, which are bound; the trace goes to its folder."""
    cwd, account = root / "scratch" / "p1" / "me", ("--account", ACCOUNTS.get(site, "g123"))
    make_fake_torch(cwd)
    (cwd / "train.py").write_text(TRAIN)
    words = ("--site", str(profile(root, site)), *account, "--container", str(root / "image"))
    recorded = (
        "--profile",
        "3",
        "--profile-after",
        "2",
        "--binding",
        "off",
        "--nodes",
        "1",
        "--tasks-per-node",
        "1",
    )
    script = saved(root, *words, *recorded, "--", "/usr/bin/python3", "train.py", cwd=cwd)
    folder = (cwd if site == "polaris" else root / "state") / "hpclaunch-12"
    done = run(script, root, cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "profile" / "trace-rank0.json").read_text() == "[]", done.stdout + done.stderr


def test_a_folder_that_cannot_be_bound_is_told(root: Path) -> None:
    cwd = root / "a,b"
    cwd.mkdir()
    words = ("--site", str(profile(root, "lumi-g")), "--account", ACCOUNTS["lumi-g"], "--dry-run")
    program = ("--container", str(root / "image"), "--binding", "off", "--", "true")
    done = run(hpclaunch("submit", *words, *program, cwd=cwd), root, cwd)
    assert f"a comma or colon keeps {cwd} out" in done.stderr


def test_a_given_definition_stays_and_gets_the_jobs_folders(root: Path) -> None:
    cwd = root / "scratch" / "p1" / "me"
    (root / "own").mkdir()
    (root / "own" / "file").write_text("by the definition\n")
    (cwd / "torch.toml").write_text(f'image = "{root}/image"\nmounts = ["{root}/own:/own"]\nworkdir = "/"\n')
    words = ("--site", str(profile(root, "daint")), "--account", "g123", "--container", "torch.toml")
    program = ("--dry-run", "--binding", "off", "--", "cat", "data.txt", "/own/file")
    done = run(hpclaunch("submit", *words, *program, cwd=cwd), root, cwd)
    assert done.stdout == "read inside\nby the definition\n", done.stderr


# --- EESSI -------------------------------------------------------------------------------------------------

EESSI = """\
environment:
  site_setup: false
  eessi: {version: '2023.06', init: container, load: [PyTorch/2.1.2-foss-2023a], cache: "$CACHE/of mine"}
"""
INIT = """\
module() { [ "$1" = load ]; export LOADED=$2; }
"""


def eessi_script(root: Path, tasks: int, job: str = EESSI) -> tuple[str, Path]:
    """The script of a job in EESSI's container, and its working folder."""
    cwd = root / "scratch" / "p1" / "me"
    (cwd / "job.yaml").write_text(job)
    init = root / "image" / "cvmfs" / "software.eessi.io" / "versions" / "2023.06" / "init" / "lmod"
    init.mkdir(parents=True)
    (init / "bash").write_text(INIT)
    words = ("--site", str(profile(root, "polaris")), "--account", "p", "--file", "job.yaml")
    program = ("--", "bash", "-c", 'echo "$LOADED"; cat data.txt "$0/scratch/p1/shared.txt"', str(root))
    size = ("--tasks-per-node", str(tasks), "--nodes", "1", "--binding", "off")
    return saved(root, *words, *size, *program, cwd=cwd), cwd


def test_eessis_container_is_pulled_once_and_what_it_loads_is_there(root: Path) -> None:
    script, cwd = eessi_script(root, tasks=3)
    log = root / "calls"
    fakes = {
        "CACHE": str(root / "cache"),
        "FAKE_CONTAINER_LOG": str(log),
        "FAKE_CONTAINER_IMAGE": str(root / "image"),
        "FAKE_RANKS": "3",
        "TMPDIR": str(root / "site"),
    }
    for _ in range(2):  # two jobs: the second takes the image that the first has pulled
        done = run(script, root, cwd, **fakes)
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()[-9:]) == sorted(
            ["PyTorch/2.1.2-foss-2023a", "read inside", "of the project"] * 3
        )
    calls = [line.split()[1] for line in log.read_text().splitlines()]
    assert (calls.count("pull"), calls.count("-q")) == (1, 6)
    assert "copied" not in log.read_text()
    assert [file.name for file in (root / "cache" / "of mine").iterdir()] == ["build-node_debian12.sif"]
    assert not list((root / "site").glob("hpclaunch-eessi.*")), "a rank's own folder was left"


def test_an_image_that_another_user_has_put_into_tmp_is_not_run(root: Path, second_user: SecondUser) -> None:
    script, cwd = eessi_script(root, tasks=1, job=EESSI.replace(', cache: "$CACHE/of mine"', ""))
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o1777)  # as /tmp is
        theirs = Path(folder) / "hpclaunch-eessi"
        image = theirs / "build-node_debian12.sif"
        second_user.shell(f"mkdir -m 755 {theirs}; echo /evil > {image}; chmod 755 {image}")
        fakes = {"SINGULARITY_CACHEDIR": folder, "FAKE_CONTAINER_IMAGE": str(root / "image")}
        done = run(script, root, cwd, **fakes, TMPDIR=str(root / "site"))
    assert done.returncode == 0, done.stderr
    assert "PyTorch/2.1.2-foss-2023a" in done.stdout.splitlines()
    own = root / "state" / ".cache" / "hpclaunch-eessi"
    assert [file.name for file in own.iterdir()] == ["build-node_debian12.sif"]
    assert own.stat().st_mode & 0o777 == 0o700


def test_an_image_that_cannot_be_pulled_is_told_with_the_line_that_gets_it(root: Path) -> None:
    script, cwd = eessi_script(root, tasks=1)
    done = run(script, root, cwd, CACHE=str(root / "cache"))  # the fake has no image to give
    assert done.returncode == 1
    assert f"on a login node run singularity pull {root}/cache/of mine/build-node_debian12.sif" in done.stderr
    (reason,) = root.glob("**/hpclaunch-12*/reason")
    assert reason.read_text().startswith("EESSI's image cannot be pulled here")
    assert not list((root / "cache" / "of mine").iterdir())


def test_a_planned_installation_of_eessis_container_ends_in_a_job_that_runs(root: Path) -> None:
    """The plan's script and job file; git is real, its repository here has the fake eessi_container.sh."""
    cwd = root / "scratch" / "p1" / "me"
    scripts = root / "scripts"
    scripts.mkdir()
    (scripts / "eessi_container.sh").write_bytes((FAKES / "eessi_container.sh").read_bytes())
    (scripts / "eessi_container.sh").chmod(0o755)
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "scripts")):
        subprocess.run(["git", *words], cwd=scripts, check=True)
    init = root / "image" / "cvmfs" / "software.eessi.io" / "versions" / "2025.06" / "init" / "lmod"
    init.mkdir(parents=True)
    (init / "bash").write_text(INIT)
    fakes = {
        "FAKE_CONTAINER_LOG": str(root / "calls"),
        "FAKE_CONTAINER_IMAGE": str(root / "image"),
        "FAKE_RANKS": "2",
        "TMPDIR": str(root / "site"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{scripts}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/EESSI/software-layer-scripts.git",
    }
    site = str(profile(root, "polaris"))
    prefix = str(root / "of mine")
    plan = (
        "software",
        "plan",
        "--site",
        site,
        "--for",
        "torch",
        "--route",
        "eessi-container",
        "--prefix",
        prefix,
    )
    hpclaunch(*plan, "--write", "get.sh", cwd=cwd)
    for _ in range(2):  # a second run finds everything there
        done = run((cwd / "get.sh").read_text(), root, cwd, **fakes)
        assert done.returncode == 0, done.stderr
    job = (cwd / "get.yaml").read_text().replace("site: polaris-here", f"site: {site}")
    (cwd / "get.yaml").write_text(job)
    program = ("--", "bash", "-c", 'echo "$LOADED"; cat data.txt')
    size = ("--tasks-per-node", "2", "--binding", "off", "--account", "p")
    script = saved(root, "--file", "get.yaml", *size, *program, cwd=cwd)
    assert "EESSI_ACCELERATOR_TARGET_OVERRIDE=accel/nvidia/cc80" in script
    done = run(script, root, cwd, **fakes)
    assert done.returncode == 0, done.stderr
    ranks = ["PyTorch/2.7.1-foss-2024a-CUDA-12.6.0", "read inside"] * 2
    assert sorted(done.stdout.splitlines()[-4:]) == sorted(ranks)
    calls = [line.split()[1] for line in (root / "calls").read_text().splitlines()]
    assert (calls.count("pull"), calls.count("-q")) == (1, 2)
