"""The directives of LSF and Flux, as scripts of others have them."""

from __future__ import annotations

from hpclaunch.scheduler.directive_readers import DIRECTIVE_READERS
from hpclaunch.scheduler.registry import KINDS, THIS_MACHINE
from tests.in_one_test import in_one_test
from tests.scheduler.directive_options import active, requested


def test_every_scheduler_with_a_queue_has_a_reader() -> None:
    assert {reader.kind for reader in DIRECTIVE_READERS} == {*KINDS} - {THIS_MACHINE}


def test_lsf() -> None:
    text = """\
#!/bin/bash
#BSUB -P stf218 -W 2:00 -nnodes 5
#BSUB -alloc_flags "gpumps smt1"
#BSUB -n 8 -R "span[ptile=4]" -gpu "num=4:j_exclusive=yes"
#BSUB -x
jsrun ./a
"""
    assert active(text, first_command=6) == [
        ("P", "stf218"),
        ("W", "2:00"),
        ("nnodes", "5"),
        ("alloc_flags", "gpumps smt1"),
        ("n", "8"),
        ("R", "span[ptile=4]"),
        ("gpu", "num=4:j_exclusive=yes"),
        ("x", None),
    ]
    found = requested(text)
    given = (found.nodes, found.tasks, found.tasks_per_node, found.gpus_per_node, found.walltime_s)
    assert [each.value if each else None for each in given] == [5, 8, 4, 4, 7200]


@in_one_test("text, seconds", [("30", 1800), ("1:05/hostA", 3900), ("2h", None)])
def test_times_of_lsf(text: str, seconds: int | None) -> None:
    found = requested(f"#BSUB -W {text}\n").walltime_s
    assert (found.value if found else None) == seconds


def test_flux() -> None:
    text = (
        "#!/bin/bash\n#flux: -N4 --exclusive --time-l=30m\n# flux: -q debug --job-name='a b'\n#FLUX: -n 8\n"
    )
    assert active(text) == [
        ("nodes", "4"),
        ("exclusive", None),
        ("time-limit", "30m"),
        ("queue", "debug"),
        ("job-name", "a b"),
        ("nslots", "8"),
    ]
    found = requested(text)
    assert found.nodes is not None
    assert found.walltime_s is not None
    assert (found.nodes.value, found.walltime_s.value) == (4, 1800)
    assert active("#flux: -t 90\n./a\n#flux: -N2\n", first_command=2) == [("time-limit", "90")]


@in_one_test("text, seconds", [("90", 5400), ("1.5h", 5400), ("1d", 86400), ("5x", None)])
def test_times_of_flux(text: str, seconds: int | None) -> None:
    found = requested(f"#flux: -t {text}\n").walltime_s
    assert (found.value if found else None) == seconds
