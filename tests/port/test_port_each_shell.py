"""A value that the batch script's shell has once, such as its host's name, and one that each rank has."""

from __future__ import annotations

import re

from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import checked_port

HEAD = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4 -t 1:00:00\n"


def ported(body: str) -> tuple[str, dict[str, str], str]:
    """The command, the variables to fill in, and the things to do."""
    found = checked_port(f"{HEAD}{body}\n", "lumi-g")
    env = found.settings.get("env", {})
    return " ".join(found.settings["command"]), env, "\n".join(found.to_do)


@in_one_test(
    "body, said",
    [
        ("srun python t.py --m $(hostname)", '--m "$MASTER_ADDR"'),
        ("srun python t.py --m `hostname -s`", '--m "$MASTER_ADDR"'),
        ("srun python t.py --m $(uname -n)", '--m "$MASTER_ADDR"'),
        ("srun python t.py --m $HOSTNAME", '--m "$MASTER_ADDR"'),
        ("srun python t.py --m ${HOSTNAME%%.*}", '--m "${MASTER_ADDR%%.*}"'),
        ("srun python t.py --m ${HOSTNAME:-localhost}", '--m "$MASTER_ADDR"'),
        ("HOSTNAME=$(hostname)\nsrun python t.py --m $HOSTNAME", '--m "$MASTER_ADDR"'),
        ("export SERVER=$(hostname)\nsrun ./app", 'export SERVER="$MASTER_ADDR"'),
        ("SERVER=$HOSTNAME srun ./app", 'export SERVER="$MASTER_ADDR"'),
        ('H=$(hostname -s)\nsrun bash -c "python t.py --i tcp://$H:44"', '"tcp://$MASTER_ADDR:44"'),
        ('srun bash -c "python t.py --i tcp://$(hostname):44"', '"tcp://$MASTER_ADDR:44"'),
        ('srun bash -c "python t.py --i ${HOSTNAME%%.*}"', '--i "${MASTER_ADDR%%.*}"'),
        ('srun bash -c "mkdir -p a; python t.py --i $(hostname)"', "python t.py --i $MASTER_ADDR"),
        (
            "srun bash -c 'python t.py --i '$(hostname)' --j '\"$HOSTNAME\"",
            '--i "$MASTER_ADDR" --j "$MASTER_ADDR"',
        ),
        ("srun bash -c 'python t.py \"$@\"' _ --i $(hostname)", '--i "$MASTER_ADDR"'),
        ("cat > r.sh <<EOF\npython t.py --i $(hostname)\nEOF\nsrun bash r.sh", '--i "$MASTER_ADDR"'),
    ],
)
def test_the_host_of_the_batch_script_is_the_first_node(body: str, said: str) -> None:
    assert said in ported(body)[0]
    assert "HOSTNAME" not in ported(body)[0]


@in_one_test(
    "body, said",
    [
        ("srun bash -c 'python t.py --me $(hostname) --i $HOSTNAME'", '--me "$HOSTNAME" --i "$HOSTNAME"'),
        ('srun bash -c "python t.py --me \\$(hostname) --i \\$HOSTNAME"', '--me "$HOSTNAME" --i "$HOSTNAME"'),
        ("srun bash -c 'H=$(hostname); python t.py --me $H'", '--me "$HOSTNAME"'),
        ('srun bash -c "mkdir -p a; python t.py --me \\$(hostname)"', "python t.py --me $(hostname)"),
        ("srun bash <<'EOF'\npython t.py --me $(hostname)\nEOF", '--me "$HOSTNAME"'),
        ("cat > r.sh <<'EOF'\npython t.py --me $HOSTNAME\nEOF\nsrun bash r.sh", '--me "$HOSTNAME"'),
        ("srun python t.py --me $USER --in $PWD/a", '--me "$USER" --in "$PWD/a"'),
    ],
)
def test_the_host_of_a_rank_stays_its_own(body: str, said: str) -> None:
    assert said in ported(body)[0]
    assert "MASTER_ADDR" not in ported(body)[0]


@in_one_test(
    "body, name",
    [
        ("srun python t.py --seed $RANDOM", "FILL_IN_WORD_RANDOM"),
        ("srun python t.py --seed ${RANDOM:0:2}", "FILL_IN_WORD_RANDOM"),
        ("RANDOM=1\nsrun python t.py --seed $RANDOM", "FILL_IN_WORD_RANDOM"),
        ('srun bash -c "python t.py --seed $RANDOM"', "FILL_IN_WORD_RANDOM"),
        ('srun bash -c "mkdir -p a; python t.py --seed $RANDOM"', "FILL_IN_WORD_RANDOM"),
        ('srun bash -c "mkdir -p a; python t.py --seed $((RANDOM % 9))"', "FILL_IN_WORD"),
        ('srun bash -c "mkdir -p a; python t.py --run `date +%s`"', "FILL_IN_WORD"),
        ("srun python t.py --seed $((RANDOM % 9)) --t $(mktemp -d)", "FILL_IN_WORD"),
        ("srun python t.py --seed $(shuf -i 1-9 -n 1)", "FILL_IN_WORD"),
        ("srun python t.py --seed $$", "FILL_IN_WORD"),
        ("srun python t.py --start $SECONDS", "FILL_IN_WORD_SECONDS"),
        ("SEED=$RANDOM\nsrun python t.py --seed $SEED", "SEED"),
    ],
)
def test_what_the_shell_of_the_script_computes_once_is_filled_in(body: str, name: str) -> None:
    command, env, to_do = ported(body)
    assert f"${{{name}}}" in command
    assert list(env) == [name]
    first = name == "SEED" or body.startswith("RANDOM=")  # the line that sets it
    assert re.search(rf"env {name}: .*line {3 if first else 3 + body.count(chr(10))}\b", to_do)
    assert "give yours another name" not in to_do


@in_one_test(
    "body, said",
    [
        ("srun bash -c 'python t.py --seed $RANDOM --p $BASHPID'", '--seed "$RANDOM" --p "$BASHPID"'),
        ('srun bash -c "python t.py --seed \\$RANDOM"', '--seed "$RANDOM"'),
        ('srun bash -c "mkdir -p a; python t.py; echo end $(date)"', "echo end $(date)"),
        ("srun bash -c 'mkdir -p a; python t.py --run $(date +%s)'", "--run $(date +%s)"),
    ],
)
def test_what_each_rank_computes_stays(body: str, said: str) -> None:
    command, env, _ = ported(body)
    assert said in command
    assert not env


def test_a_list_of_gpus_that_the_command_reads_is_that_of_a_rank() -> None:
    text = f"{HEAD}srun ./a +devices $CUDA_VISIBLE_DEVICES\n"
    found = checked_port(text, "polaris")
    assert "${CUDA_VISIBLE_DEVICES}" in " ".join(found.settings["command"])
    assert "env" not in found.settings
    assert "line 3: CUDA_VISIBLE_DEVICES names the GPUs of a rank here" in "\n".join(found.to_do)
    other = checked_port(text, "lumi-g")  # which has another variable for it
    assert list(other.settings["env"]) == ["CUDA_VISIBLE_DEVICES"]
    assert "names the GPUs of a rank here" not in "\n".join(other.to_do)
