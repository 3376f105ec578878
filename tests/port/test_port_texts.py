"""Texts that a launch gives to a shell, which launch is ported, and words that are known at run time only."""

from __future__ import annotations

from hpclaunch.port.port_script import Ported
from tests.port.fixture_scripts import checked_port

HEAD = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gres=gpu:4 -t 1:00:00\nTAR=/data/env.tar.gz\n"


def port(text: str) -> Ported:
    return checked_port(text, "lumi-g")


def command_of(ported: Ported) -> str:
    return " ".join(ported.settings["command"])


def test_a_variable_between_the_quotes_of_a_text_has_its_value() -> None:
    ported = port(HEAD + "srun bash -c '\n mkdir -p /tmp/e\n tar -xf '\"$TAR\"' -C /tmp/e\n python t.py\n'\n")
    assert "tar -xf /data/env.tar.gz -C /tmp/e" in command_of(ported)
    exported = HEAD.replace("TAR=", "export TAR=")
    ported = port(
        exported + "srun bash -c '\n mkdir -p /tmp/e\n tar -xf '\"$TAR\"' -C /tmp/e\n python t.py\n'\n"
    )
    assert "tar -xf ${TAR} -C /tmp/e" in command_of(ported)
    assert ported.settings["env"]["TAR"] == "/data/env.tar.gz"


def test_a_variable_of_a_text_that_no_line_sets_is_filled_in() -> None:
    text = "srun bash -c '\n mkdir -p \"{}/e\"\n for n in 1 2; do python t.py $n $RANK; done\n'\n"
    assert port(HEAD + text.format("$SCRATCH")).settings["env"] == {"SCRATCH": "FILL_IN_SCRATCH"}
    for known in ("${SCRATCH:-/tmp}", "$HOME"):
        assert "env" not in port(HEAD + text.format(known)).settings
    may_be_set = text.replace("mkdir", ". ./settings.sh\n mkdir").format("$SCRATCH")
    assert "env" not in port(HEAD + may_be_set).settings


def test_of_launches_with_as_many_ranks_the_one_of_python_is_ported() -> None:
    unpack, train = 'srun tar -xf "$TAR" -C /tmp\n', "srun torchrun --nproc-per-node=4 train.py\n"
    before, behind = port(HEAD + unpack + train), port(HEAD + train + unpack)
    assert "train.py" in command_of(before)
    assert "train.py" in command_of(behind)
    for ported in (before, behind):
        assert "as another job, before or behind it (--after); files on a node" in " ".join(ported.to_do)
    first = port(HEAD + "srun python first.py\nsrun python second.py\n")
    assert "first.py" in command_of(first)
    wide = HEAD.replace("--ntasks-per-node=1", "--ntasks-per-node=4")
    assert "./solve" in command_of(port(wide + "srun -n 1 python plot.py\nsrun ./solve\n"))


def test_a_bind_that_is_not_known_is_named() -> None:
    run = "apptainer exec --nv --bind ${DATA}:/data --bind /scratch/x:/x img.sif python train.py\n"
    ported = port(HEAD + run)
    assert "container_bind: what --bind binds is known at run time only" in ported.to_do
    assert ported.settings["container_bind"] == ("/scratch/x:/x",)
    assert "known at run time only" not in " ".join(port(HEAD + run.replace("${DATA}", "/d")).to_do)


def test_an_index_that_is_only_printed_may_be_read_by_the_program() -> None:
    head = "#!/bin/bash\n#$ -t 1-100\n#$ -l h_rt=1:00:00\n"
    said = "array: no line reads the index: a program that reads SGE_TASK_ID itself"
    assert said in " ".join(port(head + 'echo "job $SGE_TASK_ID"\n./solve\n').notes)
    assert said not in " ".join(port(head + "./solve $SGE_TASK_ID\n").notes)
    assert said not in " ".join(port(head + 'echo "$SGE_TASK_ID" > index\n./solve\n').notes)
