"""The software of a job's framework: who is asked first, what the script holds, what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.job.find_out import active_shell
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.plan.software_choice import ActiveShell, goals_of
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here
from tests.profiles import shipped
from tests.scripts import bare

PROFILE = """\
schema: 1
name: ours
description: a machine of ours
scheduler: {kind: slurm, launcher: srun, source: page}
binding: {cpu: none, source: page}
sources: {page: {url: 'https://site.example/software', checked: 2026-11-01}}
software:
  setup: [{text: module load base/1.0, reason: the base, source: page}]
  fallbacks: {torch/2.8.0: [torch/2.9.0, torch/2.7.0]}
  lacks:
    jax: {why: no JAX since 2026-01-02, source: page}
  offers:
    torch:
      environment: {modules: [torch/2.8.0]}
      directives: ['--constraint=ml']
      env: {TORCH_MODE: site}
      versions: {torch: 2.8.0}
      lacks: {flash_attn: it was never built there}
      source: page
    mpi4py: {versions: {mpi: Open MPI 5}, source: page}
    deepspeed:
      install: [python3 -m venv "$PREFIX"]
      environment: {venv: $PREFIX}
      source: page
"""
PBS = PROFILE.replace("slurm, launcher: srun", "pbs, launcher: pals").replace("'--constraint=ml'", "'-l x=y'")
PROGRAMS = {
    "train.py": "import torch\n",
    "attention.py": "import torch\nimport flash_attn\n",
    "maybe.py": "import torch\ntry:\n    import flash_attn\nexcept ImportError:\n    pass\n",
    "waves.py": "import jax\n",
    "zero.py": "import deepspeed\n",
    "ring.py": "import horovod.tensorflow as hvd\n",
    "keras_only.py": "from tensorflow import keras\n",
    "hello.py": "print('hello')\n",
}


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "LOADEDMODULES"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "ours.yaml").write_text(PROFILE)
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def submit(*words: str, program: str = "train.py", cwd: Path) -> subprocess.CompletedProcess[str]:
    site = () if "--site" in words else ("--site", "./ours.yaml")
    return hpclaunch_here("submit", *site, *words, "--", "python", program, folder=cwd)


def script(*words: str, program: str = "train.py", cwd: Path) -> str:
    answer = submit(*words, "--dry-run", program=program, cwd=cwd)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def refusal(*words: str, program: str, cwd: Path) -> str:
    """What a submission is refused with, which a dry run says, too."""
    answer = submit(*words, program=program, cwd=cwd)
    assert answer.returncode == 3, answer.stderr
    sentence = answer.stderr.splitlines()[0].removeprefix("hpclaunch: ")
    assert (
        f"submitting this job is refused: {sentence}"
        in submit(*words, "--dry-run", program=program, cwd=cwd).stderr
    )
    return answer.stderr


def venv(folder: Path, *modules: str, system: bool = False) -> Path:
    for module in modules:
        (folder / "lib/python3.11/site-packages" / module).mkdir(parents=True)
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = {str(system).lower()}\n"
    )
    return folder


# --- what the site offers ----------------------------------------------------------------------------------


def test_the_sites_software_goes_into_the_script_with_reason_and_source(here: Path) -> None:
    answer = submit("--dry-run", "--explain", cwd=here)
    assert "#SBATCH --constraint=ml  # torch 2.8.0, software of the site" in answer.stdout
    assert "export TORCH_MODE=site  # torch 2.8.0, software of the site" in answer.stdout
    assert "module load base/1.0" in answer.stdout
    said = "torch 2.8.0 of ours's software, https://site.example/software, read 2026-11-01"
    assert f"{said}; --software none leaves it out" in answer.stderr
    assert "torch" in next(line for line in answer.stderr.splitlines() if line.startswith("software"))


def test_the_choice_is_in_the_document(here: Path) -> None:
    document = json.loads(submit("--dry-run", "--json", cwd=here).stdout)
    settings = {each["name"]: each for each in document["settings"]}
    assert settings["software"]["value"] == "torch"
    assert settings["software"]["origin"].startswith("site profile ours: torch 2.8.0")


def test_software_none_leaves_it_out(here: Path) -> None:
    text = script("--software", "none", cwd=here)
    assert "torch/" not in text
    assert "--constraint" not in text
    assert "module load base/1.0" in text


def test_a_directive_and_a_variable_of_the_person_stay(here: Path) -> None:
    text = bare(script("--directive", "--constraint=mine", "--env", "TORCH_MODE=mine", cwd=here))
    assert "--constraint=mine" in text
    assert "--constraint=ml" not in text
    assert "export TORCH_MODE='mine'" in text or "export TORCH_MODE=mine" in text


def test_what_the_setup_has_changes_nothing(here: Path) -> None:
    answer = hpclaunch_here("submit", "--site", "./ours.yaml", "--dry-run", "mnist", folder=here)
    assert "the site's setup has it" in answer.stderr
    assert "module load base/1.0" in answer.stdout


def test_an_import_that_the_software_lacks_is_said(here: Path) -> None:
    said = "the program imports flash_attn, which it does not have: it was never built there"
    assert said in submit("--dry-run", program="attention.py", cwd=here).stderr
    assert "flash_attn" not in submit("--dry-run", program="maybe.py", cwd=here).stderr


MODULES = """
module() {
  case $1 in
    is-avail) case " $THERE " in *" $2 "*) return 0 ;; *) return 1 ;; esac ;;
    load) shift; echo "LOADED $*" ;;
  esac
}
"""


@pytest.mark.parametrize(
    ("there", "loaded"),
    [
        ("torch/2.8.0 torch/2.9.0", "torch/2.8.0"),
        ("torch/2.9.0", "torch/2.9.0"),
        ("torch/2.7.0", "torch/2.7.0"),
    ],
)
def test_where_a_module_is_gone_the_next_known_one_is_loaded(there: str, loaded: str, here: Path) -> None:
    lines = [line for line in script(cwd=here).splitlines() if "module" in line and not line.startswith("#")]
    answer = subprocess.run(
        ["bash", "-c", "\n".join(["set -eo pipefail", MODULES, *lines])],
        env={**os.environ, "THERE": there},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"LOADED {loaded}\n" in answer.stdout
    gone = f"hpclaunch: no torch/2.8.0, but {loaded}\n"
    assert answer.stderr == ("" if loaded == "torch/2.8.0" else gone)


# --- what is refused ---------------------------------------------------------------------------------------


def test_a_framework_that_the_site_has_not_is_refused_before_the_queue(here: Path) -> None:
    said = refusal(program="waves.py", cwd=here)
    assert "nothing brings jax into the job: no JAX since 2026-01-02 (https://site.example/software" in said
    assert "--venv, --conda, --module or --container; --software none submits all the same" in said
    for words in (("--software", "none"), ("--venv", "/v"), ("--module", "jax/1"), ("--container", "/i.sif")):
        assert "nothing brings" not in submit(*words, "--dry-run", program="waves.py", cwd=here).stderr


def test_nothing_documented_is_said_of_the_profile_not_of_the_site(here: Path) -> None:
    assert "our profile of ours knows no horovod-tensorflow" in refusal(program="ring.py", cwd=here)
    assert "our profile of ours knows no tensorflow" in refusal(program="keras_only.py", cwd=here)


def test_what_must_be_installed_first_names_the_command(here: Path) -> None:
    said = refusal(program="zero.py", cwd=here)
    assert "deepspeed of ours has to be installed first (https://site.example/software" in said
    command = f"hpclaunch software plan --site {here}/ours.yaml --for deepspeed --write install.sh"
    assert f"install it: {command}" in said, "the profile is a file, known by no name"
    assert hpclaunch_here(*command.split()[1:], folder=here).returncode == 0


def test_a_program_without_a_framework_needs_nothing(here: Path) -> None:
    answer = submit("--dry-run", program="hello.py", cwd=here)
    assert "torch/" not in answer.stdout
    assert "refused" not in answer.stderr


def test_a_name_that_is_not_offered_is_refused(here: Path) -> None:
    answer = submit("--software", "jax", "--dry-run", cwd=here)
    assert answer.returncode == 3
    assert "--software jax: our profile of ours offers no such software" in answer.stderr
    assert "it offers: deepspeed, mpi4py, torch" in answer.stderr
    both = submit("--software", "torch", "--container", "a.sif", "--dry-run", cwd=here)
    assert both.returncode == 3
    assert "--software torch and a container" in both.stderr


def test_a_named_software_takes_what_the_person_adds(here: Path) -> None:
    text = bare(script("--software", "torch", "--module", "extra/1", program="hello.py", cwd=here))
    assert text.index('module load "$module"') < text.index("module load extra/1")


def test_a_generic_profile_cannot_know(here: Path) -> None:
    usual = ("--site", "generic-slurm", "--gpus-per-task", "0", "--dry-run")
    said = submit(*usual, cwd=here).stderr
    assert "whether the job's Python has torch is not known; --check-imports tries it first" in said
    assert "not known" not in submit(*usual, "--check-imports", cwd=here).stderr


def test_a_profile_that_says_nothing_of_software_cannot_know(here: Path) -> None:
    """`sites new` writes such a profile; with one fact about it, what it lacks is refused."""
    (here / "ours.yaml").write_text(PROFILE.partition("software:")[0])
    said = submit("--dry-run", program="waves.py", cwd=here).stderr
    assert "whether the job's Python has jax is not known; --check-imports tries it first" in said
    assert "refused" not in said
    for fact in ("lacks: {torch: {why: gone, source: page}}", "setup: [{text: a, reason: b, source: page}]"):
        (here / "ours.yaml").write_text(PROFILE.partition("software:")[0] + f"software: {{{fact}}}\n")
        assert "our profile of ours knows no jax" in refusal(program="waves.py", cwd=here)


def test_modules_loaded_by_hand_are_handed_on_by_slurm_only(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADEDMODULES", "craype/2.7:jax-stack/0.7")
    said = submit("--dry-run", program="waves.py", cwd=here).stderr
    assert "is not known (modules of this shell: jax-stack/0.7); --check-imports tries it first" in said
    assert "refused" not in said
    (here / "ours.yaml").write_text(PBS)
    assert "nothing brings jax into the job" in refusal(program="waves.py", cwd=here)
    monkeypatch.setenv("LOADEDMODULES", "craype/2.7:cray-mpich/9")
    (here / "ours.yaml").write_text(PROFILE)
    assert "nothing brings jax into the job" in refusal(program="waves.py", cwd=here)


# --- who is asked first ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("--venv", "/v"),
        ("--conda", "c"),
        ("--module", "m/1"),
        ("--container", "/i.sif"),
        ("--env", "PYTHONPATH=/p"),
    ],
)
def test_what_the_person_names_is_over_the_site(words: tuple[str, ...], here: Path) -> None:
    assert "torch/2.8.0" not in submit(*words, "--dry-run", cwd=here).stdout


def test_a_variable_about_something_else_is_no_environment(here: Path) -> None:
    assert "torch/2.8.0" in script("--env", "NCCL_DEBUG=INFO", cwd=here)


def test_a_python_by_its_path_is_over_the_site(here: Path) -> None:
    answer = hpclaunch_here(
        "submit", "--site", "./ours.yaml", "--dry-run", "--", "/opt/py/bin/python3", "train.py", folder=here
    )
    assert "torch/2.8.0" not in answer.stdout


def test_the_configuration_is_over_the_site_and_below_this_shell(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = here / "config/hpclaunch/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("environment: {conda: of-config, modules: [tools/1]}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(here / "config"))
    text = script(cwd=here)
    assert "conda activate of-config" in text
    assert "torch/2.8.0" not in text
    monkeypatch.setenv("VIRTUAL_ENV", str(venv(here / "mine", "torch")))
    text = script(cwd=here)
    assert f'source "{here}/mine/bin/activate"' in text
    assert "of-config" not in text
    assert "module load tools/1" in text
    assert "/v/bin/activate" in script("--venv", "/v", cwd=here)


def test_an_active_environment_is_taken_and_said_in_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = venv(here / "mine", "torch")
    monkeypatch.setenv("VIRTUAL_ENV", str(folder))
    answer = submit("--dry-run", cwd=here)
    assert f'source "{folder}/bin/activate"' in answer.stdout
    assert (
        f"the job uses {folder}, which is active in this shell; --software none leaves it out"
        in answer.stderr
    )
    assert "torch/2.8.0" not in answer.stdout
    assert str(folder) not in script("--software", "none", cwd=here)
    far = submit("--host", "site", "--sync", ".", "--dry-run", cwd=here)
    assert str(folder) not in far.stdout


def test_an_active_environment_without_the_framework_is_not_used(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = venv(here / "tools", "ruff")
    monkeypatch.setenv("VIRTUAL_ENV", str(folder))
    answer = submit("--dry-run", cwd=here)
    assert "torch/2.8.0" in answer.stdout
    assert f"{folder}, which is active in this shell, has no torch and is not used" in answer.stderr
    (folder / "pyvenv.cfg").write_text(
        "include-system-site-packages = true\n"
    )  # the packages of another Python
    assert f'source "{folder}/bin/activate"' in script(cwd=here)


def test_the_environment_of_hpclaunch_itself_counts_only_with_the_framework() -> None:
    own = {"VIRTUAL_ENV": sys.prefix}
    assert active_shell(own, "no_such_framework") == ActiveShell()
    assert active_shell(own, "click") == ActiveShell(venv=sys.prefix)


def test_condas_base_is_no_environment(tmp_path: Path) -> None:
    folder = str(venv(tmp_path / "conda", "torch"))
    base = {"CONDA_PREFIX": folder, "CONDA_DEFAULT_ENV": "base"}
    assert active_shell(base, "torch").path == ""
    assert active_shell({**base, "CONDA_DEFAULT_ENV": "mine"}, "torch").conda == folder


def test_conda_on_pbs_goes_by_path(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """qsub hands no variables on, so ``conda`` itself may not be found."""
    folder = venv(here / "env", "torch")
    monkeypatch.setenv("CONDA_PREFIX", str(folder))
    monkeypatch.setenv("CONDA_DEFAULT_ENV", "env")
    assert f"conda activate {folder}" in script(cwd=here)
    (here / "ours.yaml").write_text(PBS)
    text = script(cwd=here)
    assert f'export PATH="{folder}/bin":"$PATH"' in text
    assert "conda activate" not in text


def test_a_script_brings_its_own_software(here: Path) -> None:
    (here / "run.sh").write_text("python train.py\n")
    words = ("--site", "./ours.yaml", "--framework", "torch", "--dry-run", "--", "bash", "run.sh")
    answer = hpclaunch_here("submit", *words, folder=here)
    assert "torch/2.8.0" not in answer.stdout
    assert "run.sh brings its own software, or --software torch that of the site" in answer.stderr


# --- which software ----------------------------------------------------------------------------------------


@in_one_test(
    "framework, imports, goals",
    [
        ("horovod", ("horovod.torch", "torch"), ("horovod-torch",)),
        ("horovod", ("horovod.keras",), ("horovod-tensorflow",)),
        ("horovod", ("horovod", "tensorflow"), ("horovod-tensorflow",)),
        ("horovod", (), ("horovod-torch", "horovod-tensorflow")),
        ("torch", ("lightning",), ("torch",)),
        (None, ("tensorflow.keras",), ("tensorflow",)),
        (None, ("numpy",), ()),
        ("jax", ("jax", "torch"), ("jax",)),
    ],
)
def test_which_software_a_program_needs(
    framework: Any, imports: tuple[str, ...], goals: tuple[str, ...]
) -> None:
    request = JobRequest(
        site="x", name="x", command=Command(argv=("python", "a.py")), framework=framework, imports=imports
    )
    assert goals_of(request) == goals


def live_gpu_sites() -> Iterator[str]:
    from hpclaunch.package_data import resource_dir

    for path in sorted(resource_dir("site_profiles").glob("*.yaml")):
        node = shipped(path.stem).node
        if shipped(path.stem).status == "production" and node and node.gpus:
            yield path.stem


@pytest.mark.slow
@pytest.mark.parametrize("site", list(live_gpu_sites()))
@pytest.mark.parametrize("program", ["train.py", "waves.py", "zero.py", "ring.py"])
def test_no_submission_is_silent(site: str, program: str, here: Path) -> None:
    """Each machine brings the framework, or the submission is refused with what helps."""
    from tests.plan.test_golden import ACCOUNTS

    account = ACCOUNTS.get(site) or "nn1234k"
    answer = submit("--site", site, "--account", account, "--dry-run", program=program, cwd=here)
    assert answer.returncode == 0, answer.stderr
    taken = "'s software, http" in answer.stderr
    refused = "is refused:" in answer.stderr and "--software none submits all the same" in answer.stderr
    assert taken != refused, answer.stderr
