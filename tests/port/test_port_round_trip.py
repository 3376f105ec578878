"""Slurm to PBS to Slurm: what both schedulers can say comes back the same."""

from __future__ import annotations

import shlex
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hpclaunch.port.port_script import port_script
from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import DATA, machine_of, rendered
from tests.profiles import shipped

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@st.composite
def slurm_scripts(draw: st.DrawFn) -> str:
    """A script for LUMI-G with what a job file can say."""
    nodes = draw(st.sampled_from([1, 2, 4, 8]))
    ranks = draw(st.sampled_from([1, 2, 4, 8]))
    minutes = draw(st.integers(10, 55))
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={draw(st.from_regex('[A-Za-z][A-Za-z0-9_-]{0,9}', fullmatch=True))}",
        *("#SBATCH --account=project_465000001", "#SBATCH --partition=standard-g"),
        f"#SBATCH --nodes={nodes}",
        f"#SBATCH --ntasks-per-node={ranks} --gpus-per-node={ranks}",
        f"#SBATCH --time=00:{minutes}:00",
        *draw(st.sampled_from([[], ["#SBATCH --array=0-9"], ["#SBATCH --array=1-7:2"]])),
        *draw(st.sampled_from([[], ["#SBATCH --dependency=afterok:12"], ["#SBATCH -d afterany:12:13"]])),
        *draw(st.sampled_from([[], ["#SBATCH --mail-type=END,FAIL --mail-user=me@uni.no"]])),
    ]  # fmt: skip
    lines += [
        f"export VAR{n}={shlex.quote(word)}" for n, word in enumerate(draw(st.lists(WORDS, max_size=2)))
    ]
    words = " ".join(map(shlex.quote, draw(st.lists(WORDS, max_size=3))))
    tail = draw(st.sampled_from(["", ' --out "$HOME/$SLURM_JOB_ID"', " --n $SLURM_NTASKS"]))
    return "\n".join([*lines, f"srun python train.py {words}{tail}", ""])


def there_and_back(text: str, source: str, to: str) -> tuple[list[dict[str, Any]], str]:
    """The job files of four ports, to and fro, and the last script."""
    found, sites = [], (source, to)
    for number in range(4):
        ported = port_script(text, shipped(sites[number % 2]), shipped(sites[(number + 1) % 2]))
        found.append(ported.settings)
        text = rendered(ported)[1]
    return found, text


# Without shrinking: a smaller script says no more, and each costs four ports and renderings.
@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(slurm_scripts())
def test_slurm_to_pbs_to_slurm_is_a_fixed_point(text: str) -> None:
    (to, back, again, back_again), _ = there_and_back(text, "lumi-g", "polaris")
    assert again == to
    assert back_again == back
    assert again["name"] == back["name"]
    assert again["command"] == back["command"]


@in_one_test("name", ["script.lumi-masks-twin", "script.container-broken", "script.map-cpu-twin"])
@in_one_test("to", ["polaris", "generic-pbs"])
def test_fixtures_come_back(name: str, to: str) -> None:
    text = (DATA / f"{name}.sh").read_text()
    source = machine_of(text)
    assert source is not None
    found, script = there_and_back(text, source.name, to)
    assert found[2:] == found[:2]
    assert port_script(script, source, shipped(to)).settings == found[0]
