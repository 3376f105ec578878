"""``environment:`` as script text: order, reasons, quoting, containers, and what contradicts itself."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hpclaunch.cli.check import read_environment
from hpclaunch.errors import BadInputError
from hpclaunch.site.load_profile import load_site, site_names
from hpclaunch.site.schema import Environment, JobContainer, JobEasyBuild, JobEessi
from hpclaunch.software.containers import launch_options
from hpclaunch.software.contradictions import contradictions
from hpclaunch.software.script_lines import double_quote, word
from hpclaunch.software.software_lines import (
    environment_lines,
    private_folders,
    site_variables,
    wrap_command,
)
from tests.in_one_test import in_one_test
from tests.profiles import shipped

LOCAL, LUMI, OLIVIA, DAINT = (shipped(name) for name in ("local", "lumi-g", "olivia", "daint"))
COMMAND = ("python", "train.py", "--lr", "1 e")


def texts(environment: Environment | None, site: str = "local") -> list[str]:
    return [line.text for line in environment_lines(environment, load_site(site))]


def test_no_environment_is_the_sites_setup() -> None:
    assert texts(None, "lumi-g") == [step.text for step in LUMI.software.setup]
    assert texts(Environment(site_setup=False), "lumi-g") == []


def test_everything_in_the_one_order_that_works() -> None:
    environment = Environment(
        venv="$SCRATCH/venv",
        conda="base",
        modules=("git",),
        module_use=("/my modules",),
        easybuild=JobEasyBuild(prefix="$HOME/eb", load=("zlib-1.2.12.eb",)),
        eessi=JobEessi(version="2023.06"),
    )
    assert texts(environment) == [
        'export EASYBUILD_PREFIX="$HOME/eb"',
        "ls /cvmfs/software.eessi.io > /dev/null",
        '[ -z "$MODULEPATH" ] || module unuse "$MODULEPATH"',
        "module use /cvmfs/software.eessi.io/init/modules",
        "module load EESSI/2023.06",
        'module use "/my modules"',
        'module use "$HOME/eb/modules/all"',
        "module load zlib/1.2.12",
        "module load git",
        'eval "$(conda shell.bash hook)"',
        "conda activate base",
        'source "$SCRATCH/venv/bin/activate"',
    ]
    assert all(line.reason for line in environment_lines(environment, LOCAL))


def test_lumi_knows_its_own_variable_and_must_know_it_first() -> None:
    environment = Environment(easybuild=JobEasyBuild(prefix="/project/p/EasyBuild", load=("zlib-1.2.12.eb",)))
    lines = texts(environment, "lumi-g")
    assert lines[0] == 'export EBU_USER_PREFIX="/project/p/EasyBuild"'
    assert lines[-1] == "module load zlib/1.2.12"
    assert not any("modules/all" in line for line in lines)


def test_advice_that_is_no_path_is_not_taken() -> None:
    assert "<id>" in str(LUMI.software.easybuild and LUMI.software.easybuild.prefix)
    assert "EBU_USER_PREFIX" not in " ".join(texts(Environment(easybuild=JobEasyBuild()), "lumi-g"))


# --- quoting -----------------------------------------------------------------------------------------------

NASTY = "a b'c\"d`touch x`$(touch y)\\"


def shell(text: str, **extra: str) -> str:
    done = subprocess.run(
        ["bash", "-c", text], env={**os.environ, **extra}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_quoting_expands_variables_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shell(f"printf %s {double_quote(NASTY + '$NAME/${NAME}')}", NAME="n m") == f"{NASTY}n m/n m"
    assert shell(f"printf %s {word(NASTY)}") == NASTY
    assert shell(f"printf %s {word('~/my venv,~/b:~root ~/c')}", HOME="/h") == "/h/my venv,/h/b:~root ~/c"
    for trick in ("${x:-$(touch y)}", "$[a[$(touch y)]]", "${a[$(touch y)]}", "${x@P}", "${!x}", "$((1))"):
        assert shell(f"printf %s {double_quote(trick)}", x="$(touch y)") == trick
    assert shell(f"printf %s {double_quote('/l${N:+:$N}${U:-/d}')}", N="n m") == "/l:n m/d"
    assert list(tmp_path.iterdir()) == []
    assert word("Horovod/0.28.1-foss-2022a") == "Horovod/0.28.1-foss-2022a"


# --- containers --------------------------------------------------------------------------------------------


def wrapped(container: JobContainer, site: str) -> tuple[str, ...]:
    return wrap_command(Environment(container=container), load_site(site), COMMAND)


def test_a_command_without_a_container_is_as_it_was() -> None:
    assert wrap_command(None, OLIVIA, COMMAND) == COMMAND
    assert wrap_command(Environment(venv="x"), OLIVIA, COMMAND) == COMMAND


def test_each_site_has_its_runtime_flag_and_binds() -> None:
    image = JobContainer(image="/images/torch.sif", binds=("/data:/d",))
    assert wrapped(image, "olivia") == ("apptainer", "exec", "--nv", "/images/torch.sif", *COMMAND)
    assert wrapped(image, "lumi-g") == ("singularity", "exec", "/images/torch.sif", *COMMAND)
    assert wrapped(image, "local") == ("apptainer", "exec", "/images/torch.sif", *COMMAND)
    assert wrapped(replace(image, gpu=False), "olivia") == (
        "apptainer",
        "exec",
        "/images/torch.sif",
        *COMMAND,
    )
    lumi = texts(Environment(container=image), "lumi-g")
    assert lumi[-1] == 'SINGULARITY_BIND+=",/data:/d"'
    assert lumi.index("module load lumi-aif-singularity-bindings") == len(lumi) - 2  # which binds the rest
    assert any(
        line.startswith('for bind in "$EBROOTLIBFABRIC" ')
        for line in texts(Environment(container=image), "olivia")
    )


def test_a_venv_inside_and_an_image_in_a_variable_run_as_meant(tmp_path: Path) -> None:
    """The words are run with a stand-in that prints what a container runtime is given."""
    fake = tmp_path / "apptainer"
    fake.write_text('#!/bin/bash\nprintf "%s\\n" "${@:1:2}"\nshift 2\nexec "$@"\n')
    fake.chmod(0o755)
    venv = tmp_path / "a venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "activate").write_text("export ACTIVE=yes\n")
    container = JobContainer(image="$IMAGES/x.sif", venv="$HERE/a venv")
    words = wrap_command(
        Environment(container=container), LOCAL, ("bash", "-c", 'echo "$ACTIVE $1"', "x", "1 e")
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "IMAGES": "/i m", "HERE": str(tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "exec\n/i m/x.sif\nyes 1 e\n"


@pytest.mark.parametrize(
    ("image", "line"),
    [
        ("ngc.toml", 'base_environment = "./ngc.toml"'),
        ("/edf/ngc.toml", 'base_environment = "/edf/ngc.toml"'),
        ("ngc-pytorch", 'base_environment = "ngc-pytorch"'),
        ("docker://nvcr.io/nvidia/pytorch:24.01-py3", 'image = "nvcr.io#nvidia/pytorch:24.01-py3"'),
        ("docker://library/ubuntu:24.04", 'image = "library/ubuntu:24.04"'),
        ("$HERE/torch.sqsh", 'image = "/i \\"m\\" $${x}/torch.sqsh"'),
    ],
)
def test_the_container_engine_gets_a_definition(image: str, line: str, tmp_path: Path) -> None:
    container = JobContainer(image=image, binds=("/data", "/more:/there"))
    lines = texts(Environment(site_setup=False, container=container), "daint")
    here = {"HERE": '/i "m" ${x}', "HPCLAUNCH_JOB_FOLDER": str(tmp_path), "USER": "me"}
    shell(f"cd {tmp_path}\n" + "\n".join(lines), **here)
    definition = (tmp_path / "container.toml").read_text()
    assert definition.splitlines()[:2] == [line, f'workdir = "{tmp_path}"']
    for mount in (f"{tmp_path}:{tmp_path}", "/data:/data", "/more:/there"):
        assert f'"{mount}",\n' in definition
    assert ('com.hooks.aws_ofi_nccl.enabled = "true"' in definition) == line.startswith("image")


def test_the_container_engine_is_an_option_of_the_launcher() -> None:
    environment = Environment(container=JobContainer(image="ngc.toml"))
    assert launch_options(environment, DAINT) == ('--environment="$HPCLAUNCH_JOB_FOLDER/container.toml"',)
    assert wrap_command(environment, DAINT, COMMAND) == COMMAND
    assert launch_options(environment, OLIVIA) == launch_options(None, DAINT) == ()


def test_eessis_container_needs_a_runtime_that_its_script_starts() -> None:
    environment = Environment(eessi=JobEessi(version="2023.06", init="container"))
    (why,) = contradictions(environment, shipped("perlmutter"))
    assert (
        why == "eessi init: container needs Singularity or Apptainer; perlmutter has shifter and podman-hpc"
    )
    assert not contradictions(environment, OLIVIA)


@in_one_test(
    "image, pyxis, shifter, podman",
    [
        ("docker://nvcr.io/a/b:1", "nvcr.io#a/b:1", "docker:nvcr.io/a/b:1", "nvcr.io/a/b:1"),
        ("nvcr.io/a/b:1", "nvcr.io#a/b:1", "nvcr.io/a/b:1", "nvcr.io/a/b:1"),
        ("nvcr.io#a/b:1", "nvcr.io#a/b:1", "nvcr.io/a/b:1", "nvcr.io/a/b:1"),
        ("docker://me@r.io:5000/a", "me@r.io:5000#a", "docker:me@r.io:5000/a", "me@r.io:5000/a"),
        ("nersc/pytorch:25.06.01", *["nersc/pytorch:25.06.01"] * 3),
        ("docker://ubuntu:24.04", "ubuntu:24.04", "docker:ubuntu:24.04", "ubuntu:24.04"),
        ("${MY:-a}/b.c", *["${MY:-a}/b.c"] * 3),
        ("a b/c.sqsh", "./a b/c.sqsh", None, None),
        ("/a/c.sqsh", "/a/c.sqsh", None, None),
        ("$MY/c.sqsh", "$MY/c.sqsh", None, None),
    ],
)
def test_each_runtime_gets_an_image_as_it_names_it(
    image: str, pyxis: str, shifter: str | None, podman: str | None
) -> None:
    profile = load_site("generic-slurm")

    def of(runtime: Literal["pyxis", "shifter", "podman-hpc"]) -> Environment:
        return Environment(container=JobContainer(image=image, runtime=runtime))

    assert launch_options(of("pyxis"), profile)[0] == f"--container-image={double_quote(pyxis)}"
    if shifter is None or podman is None:
        for runtime in (of("shifter"), of("podman-hpc")):
            assert "cannot be started by" in str(contradictions(runtime, profile))
        return
    assert f"--image={shifter}" in re.sub('"', "", " ".join(wrap_command(of("shifter"), profile, ())))
    assert f" {double_quote(podman)} " in " ".join(wrap_command(of("podman-hpc"), profile, ()))


@in_one_test(
    "environment",
    [
        Environment(modules=("-x",)),
        Environment(modules=("a\nb",)),
        Environment(conda=" "),
        Environment(venv="a\0"),
        Environment(container=JobContainer(image="--writable")),
        Environment(container=JobContainer(image="i", binds=(":/x",))),
        Environment(eessi=JobEessi(version="2023.06", load=("--force",))),
    ],
)
def test_texts_that_no_command_line_can_have_are_refused(environment: Environment) -> None:
    with pytest.raises(BadInputError, match=r"is not a name or path|has a control character"):
        environment_lines(environment, LOCAL)


# --- contradictions ----------------------------------------------------------------------------------------

OLD = "Horovod-0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0.eb"


@in_one_test(
    "site, environment, words",
    [
        (
            "polaris",
            Environment(modules=("cuda/12.1", OLD.removesuffix(".eb").replace("-", "/", 1))),
            "CUDA 12.1",
        ),
        (
            "polaris",
            Environment(modules=("cuda/12.1",), easybuild=JobEasyBuild(load=(OLD,))),
            "load only one of them",
        ),
        ("daint", Environment(easybuild=JobEasyBuild(load=(OLD,))), "cannot address the GPUs of daint"),
        ("olivia", Environment(modules=("CUDA/12.6.0",)), "CUDA 13.0.0"),
        ("lumi-g", Environment(modules=("cuda/12.1",)), "has AMD GPUs"),
        (
            "olivia",
            Environment(eessi=JobEessi(version="2023.06", load=("Horovod/0.28.1-foss-2022a",))),
            "no version of EESSI has Horovod",
        ),
        (
            "local",
            Environment(eessi=JobEessi(version="2023.06", load=("PyTorch/2.7.1-foss-2024a",))),
            "has the toolchains 2022b, 2023a, 2023b only",
        ),
        (
            "local",
            Environment(venv="v", container=JobContainer(image="i.sif")),
            "give a venv as container: venv",
        ),
        (
            "local",
            Environment(
                container=JobContainer(image="i"), eessi=JobEessi(version="2023.06", init="container")
            ),
            "one of them",
        ),
    ],
)
def test_contradictions_are_caught(site: str, environment: Environment, words: str) -> None:
    assert any(words in each for each in contradictions(environment, load_site(site)))
    with pytest.raises(BadInputError, match="environment: "):
        environment_lines(environment, load_site(site))


@in_one_test(
    "site, environment",
    [
        ("polaris", Environment(modules=("cuda/11.7",), easybuild=JobEasyBuild(load=(OLD,)))),
        ("olivia", Environment(modules=("CUDA/13.0.0",))),
        ("olivia", Environment(site_setup=False, modules=("CUDA/12.6.0",))),
        ("local", Environment(container=JobContainer(image="i.sif", venv="v"))),
    ],
)
def test_what_fits_is_left_alone(site: str, environment: Environment) -> None:
    assert contradictions(environment, load_site(site)) == ()


@in_one_test("site", sorted(site_names()))
def test_no_sites_own_setup_contradicts_itself(site: str) -> None:
    assert contradictions(Environment(), load_site(site)) == ()


# --- variables and files -----------------------------------------------------------------------------------


def test_variables_of_one_node_and_of_several() -> None:
    one = {line.text for line in site_variables(DAINT, 1, None)}
    two = {line.text for line in site_variables(DAINT, 2, None)}
    assert "unset NCCL_NET" in one
    assert 'export NCCL_NET="AWS Libfabric"' in two
    given = site_variables(DAINT, 2, None, frozenset({"NCCL_NET"}))
    assert not any("NCCL_NET=" in line.text for line in given)


def test_in_a_container_the_values_of_the_sites_engine_stand() -> None:
    """docs.cscs.ch: its hook sets NCCL's variables; TRITON_HOME in /dev/shm is not for containers."""
    image = Environment(container=JobContainer(image="x.toml"))
    names = {line.text.split()[1].partition("=")[0] for line in site_variables(DAINT, 2, image)}
    assert names == {"MPICH_GPU_SUPPORT_ENABLED", "CUDA_CACHE_DISABLE", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}
    assert (private_folders(DAINT, 2, None), private_folders(DAINT, 2, image)) == (("TRITON_HOME",), ())
    lumi = {line.text for line in site_variables(LUMI, 2, None)}
    assert {line.text for line in site_variables(LUMI, 2, image)} == lumi


def test_a_job_file(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("nodes: 2\nenvironment:\n  modules: [a, b/1]\n  container: {image: x.sif, gpu: false}\n")
    assert read_environment(job) == Environment(
        modules=("a", "b/1"), container=JobContainer(image="x.sif", gpu=False)
    )
    job.write_text("nodes: 2\n")
    assert read_environment(job) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("environment:\n  moduls: [a]\n", "did you mean 'modules'"),
        ("environment:\n  modules: a\n", "job.yaml:2"),
        ("environment:\n  eessi: {init: shell}\n", "version"),
        ("environment: [a]\n", "job.yaml:1"),
        ("- a\n", "not a mapping"),
    ],
)
def test_a_wrong_job_file_is_told_by_line(text: str, words: str, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(text)
    with pytest.raises(BadInputError) as caught:
        read_environment(job)
    assert words in str(caught.value)


def test_folders_go_first_on_the_path_in_their_order() -> None:
    environment = Environment(site_setup=False, path=("$HOME/first one/bin", "/second"))
    lines = texts(environment)
    assert lines == ['export PATH="/second":"$PATH"', 'export PATH="$HOME/first one/bin":"$PATH"']


def test_a_line_runs_in_the_container_before_the_command() -> None:
    container = JobContainer(image="$SIFJAX", activate="$WITH_CONDA", site_modules=False)
    environment = Environment(site_setup=False, container=container)
    command = wrap_command(environment, LUMI, COMMAND)
    assert command[4:6] == ("bash", "-c")
    assert command[6] == '$WITH_CONDA && exec -- "$@"'
    assert not [text for text in texts(environment, "lumi-g") if text.startswith("module")]


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0$~")))
def test_what_cannot_be_seen_is_visible_in_double_quotes(text: str) -> None:
    """Marks that turn the direction of text around, too: the shell reads the same text."""
    quoted = double_quote(text)
    assert quoted.isprintable()
    shell = ["bash", "-c", f"printf %s {quoted}"]
    assert subprocess.run(shell, capture_output=True, check=True).stdout.decode() == text
