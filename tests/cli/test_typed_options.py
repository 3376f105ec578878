"""What people type who know sbatch, qsub, flux, bsub or torchrun, and what else is told before the queue."""

from __future__ import annotations

import re
from pathlib import Path

import click
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.cli._job_options import setting_options, typed_options
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here

LUMI = ("--site", "lumi-g", "--account", "project_465000001", "--dry-run")
POLARIS = ("--site", "polaris", "--account", "MyProject", "--dry-run")
GENERIC = ("--site", "generic-slurm", "--dry-run")

REFUSED = [
    (LUMI, ("--gpus", "4"), 2, "--gpus of sbatch: --tasks 4 --gpus-per-task 1"),
    (LUMI, ("--output=x",), 2, "hpclaunch logs ID shows it"),
    (LUMI, ("--qos", "debug"), 2, "--queue debug if the site's profile lists that QOS"),
    (LUMI, ("--mail-type=END",), 2, "--directive --mail-type=END"),
    (POLARIS, ("-l", "select=2:ncpus=8:mpiprocs=4"), 2, "-l of qsub: --nodes 2 --tasks-per-node 4"),
    (POLARIS, ("--mail-type=END",), 2, "--directive '-m e'"),
    (POLARIS, ("-N", "train"), 2, "a job's name is --name train"),
    (POLARIS, ("-J", "0-9"), 2, "indices of an array: --array 0-9"),
    (POLARIS, ("-p", "100"), 2, "--directive '-p 100'"),
    (POLARIS, ("-t", "1-10"), 2, "--array 1-10"),
    (LUMI, ("-nnodes", "2"), 2, "bsub's -nnodes is --nodes"),
    (LUMI, ("--container", "a.sif", "--container=b.sif"), 2, "--container is given twice, a.sif and b.sif"),
    (LUMI, ("--venv", "/a", "--conda", "b"), 3, "--venv /a and --conda b: a job has one Python"),
    (LUMI, ("--directive", "--mail-tpye=END"), 3, "did you mean --mail-type?"),
    (LUMI, ("--sbatch-arg", "--exlcusive"), 3, "sbatch has no option --exlcusive"),
    (LUMI, ("--host", "a b"), 3, "'a b' is not a host"),
    (LUMI, ("--host", "me@lumi:99999"), 3, "'me@lumi:99999' is not a host"),
    (LUMI, ("--mem", "500G"), 3, "a node of lumi-g gives 480G to jobs (https://"),
    (LUMI, ("--mem", "100"), 3, "write a number and K, M, G or T, as in --mem 64G"),
    (("--site", "generic-flux", "--dry-run"), ("--mem", "1G"), 3, "Flux has no request for memory"),
    (("--site", "abci", "--account", "g", "--dry-run"), ("--mem", "1G"), 3, "Grid Engine counts memory"),
    (POLARIS, ("--mem", "0"), 3, "PBS has no word for all memory"),
    (LUMI, ("--begin", "now+1hour"), 3, "write it as 2026-12-31T18:00"),
    (LUMI, ("--begin", "2026-13-31T18:00"), 3, "is not a date with a time"),
    (("--site", "theta", "--account", "a", "--dry-run"), ("--begin", "2026-12-31T18:00"), 3, "Cobalt has no"),
    (("--site", "local", "--dry-run"), ("--begin", "2026-12-31T18:00"), 3, "this machine has no queue"),
    (("--site", "generic-flux", "--dry-run"), ("--begin", "2026-12-31T18:00", "--max-restarts", "1"), 3,
     "--begin and --max-restarts do not go together on Flux"),
    (POLARIS, ("--exclude", "x1"), 3, "PBS has no option that leaves nodes out"),
    (("--site", "mn5-acc", "--account", "a", "--dry-run"), ("--directive", "--qos=acc_debug"), 3,
     "use --partition, which takes the QOS"),
]  # fmt: skip


@in_one_test("site, options, code, words", REFUSED)
def test_it_is_refused_with_what_would_be_right(
    site: tuple[str, ...], options: tuple[str, ...], code: int, words: str
) -> None:
    answer = hpclaunch_here("submit", *site, *options, "--", "true")
    assert (answer.returncode, answer.stdout) == (code, "")
    assert words in answer.stderr


WRITTEN = [
    (LUMI, ("--mem", "100GiB"), "#SBATCH --mem=100G  # memory of each node"),
    (LUMI, ("--mem", "0"), "#SBATCH --mem=480G  # memory of each node"),
    (GENERIC, ("--mem", "0"), "#SBATCH --mem=0  # memory of each node"),
    (GENERIC, ("--directive", "--qos=long"), "#SBATCH --qos=long  # given with --directive"),
    (GENERIC, ("--directive", "--mail-typ=END"), "#SBATCH --mail-typ=END  # given with --directive"),
    (GENERIC, ("--directive", "--sitewide-thing=1"), "#SBATCH --sitewide-thing=1  # given with --directive"),
    (GENERIC, ("--exclude", "n[1-2,5],n9"), "#SBATCH --exclude=n[1-2,5],n9  # nodes to leave out"),
    (GENERIC, ("--begin", "2026-12-31 18:00"), "#SBATCH --begin=2026-12-31T18:00  # the job"),
    (GENERIC, ("-t", "1-10"), "#SBATCH --time=34:00:00  # walltime limit"),
    (POLARIS, ("--mem", "100G"), "#PBS -l select=1:system=polaris:mem=100Gb"),
    (POLARIS, ("--begin", "2026-12-31T18:00"), "#PBS -a 202612311800"),
    (("--site", "generic-lsf", "--dry-run"), ("--mem", "9g"), '#BSUB -R "rusage[mem=9GB]"'),
    (("--site", "generic-lsf", "--dry-run"), ("--begin", "2026-12-31T18:00"), "#BSUB -b 2026:12:31:18:00"),
    (("--site", "generic-flux", "--dry-run"), ("--begin", "2026-12-31T18:00"),
     '#flux: --begin-time="2026-12-31 18:00"'),
    (("--site", "abci", "--account", "g", "--dry-run"), ("--begin", "2026-12-31T18:00"),
     "#$ -a 202612311800"),
]  # fmt: skip


@in_one_test("site, options, line", WRITTEN)
def test_it_stands_in_the_script(site: tuple[str, ...], options: tuple[str, ...], line: str) -> None:
    answer = hpclaunch_here("submit", *site, *options, "--", "true")
    assert answer.returncode == 0, answer.stderr
    assert "refused" not in answer.stderr
    assert any(each.startswith(line) for each in answer.stdout.splitlines()), answer.stdout


def test_the_sites_scheduler_decides_also_where_a_file_names_the_site(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("site: polaris\ncommand: ['true']\n")
    answer = hpclaunch_here("submit", "--file", job, "-q", "debug")
    assert "-q of qsub: --queue debug" in answer.stderr
    assert "sbatch" not in answer.stderr


def test_resubmit_says_the_same() -> None:
    answer = hpclaunch_here("resubmit", "last", "--gpus", "4")
    assert answer.returncode == 2
    assert "--gpus of sbatch: --tasks 4 --gpus-per-task 1" in answer.stderr


def test_options_of_the_training_stay_those_of_the_training() -> None:
    answer = hpclaunch_here("submit", *LUMI, "mnist", "--output", "x")
    assert "options of the training come after --" in answer.stderr


def test_gpus_that_no_rank_has_are_told() -> None:
    answer = hpclaunch_here("submit", *LUMI, "--gpus-per-task", "3", "--", "true")
    assert "hpclaunch: 2 GPUs stay idle: 6-7\n" in answer.stderr
    answer = hpclaunch_here(
        "submit",
        "--site",
        "betzy-accel",
        "--account",
        "nn1234k",
        "--dry-run",
        "--gpus-per-task",
        "3",
        "--",
        "true",
    )
    assert "hpclaunch: 1 GPU stays idle: 3\n" in answer.stderr
    assert "GPUs stay idle" not in hpclaunch_here("submit", *LUMI, "--", "true").stderr


def test_no_gpus_per_rank_are_no_gpus_of_the_job() -> None:
    answer = hpclaunch_here(
        "submit", *LUMI, "--framework", "torch", "--gpus-per-task", "0", "--tasks-per-node", "9", "--", "true"
    )
    assert answer.returncode == 0, answer.stderr
    assert not re.search(r"--gpus|VISIBLE_DEVICES", answer.stdout)
    assert "--ntasks-per-node=9" in answer.stdout
    assert "8 GPUs stay idle: 0-7" in answer.stderr
    refused = hpclaunch_here("submit", *LUMI, "--framework", "torch", "--tasks-per-node", "9", "--", "true")
    assert "--gpus-per-task 0 is for programs without GPUs" in refused.stderr


def test_a_venv_on_top_of_a_conda_environment_is_stated_in_a_job_file(tmp_path: Path) -> None:
    """ALCF documents this for Polaris (docs.alcf.anl.gov, Python)."""
    job = tmp_path / "job.yaml"
    job.write_text("command: ['true']\nenvironment: {conda: base, venv: /v}\n")
    answer = hpclaunch_here("submit", *GENERIC, "--file", job)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.index("conda activate base") < answer.stdout.index("/v/bin/activate")


OPTIONS = setting_options()
FLAGS = [option.opts[0] for option in OPTIONS if isinstance(option, click.Option) and option.is_flag]
VALUED = [
    name
    for option in OPTIONS
    if isinstance(option, click.Option) and not option.is_flag
    for name in option.opts
]


VALUES = ["", "-", "-N", "--nodes", "--nosuch=1", "x y", "=1", "mnist"]


@given(st.lists(st.tuples(st.sampled_from([*FLAGS, *VALUED]), st.sampled_from(VALUES)), max_size=6))
def test_known_options_are_read_as_click_reads_them(given_options: list[tuple[str, str]]) -> None:
    """The values are words of their own, of any text: none of them is taken for an option."""
    words, names = [], []
    for name, value in given_options:
        names.append(name)
        words += [name] if name in FLAGS else [name, value]
    found = list(typed_options(OPTIONS, [*words, "--", "--gpus"]))
    assert [each.name for each in found] == names
    parser = click.Command("x", params=OPTIONS).make_parser(click.Context(click.Command("x")))
    _, _, order = parser.parse_args(list(words))
    assert [each.option for each in found] == order


@given(st.lists(st.text("-=aNJ1 \u00e9", max_size=6), max_size=5))
def test_any_words_are_walked(words: list[str]) -> None:
    for each in typed_options(OPTIONS, words):
        assert each.word in words
