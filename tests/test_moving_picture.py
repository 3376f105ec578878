"""The moving picture of the README shows what the commands print.

After a wanted change: python -m benchmarks.moving_picture; look at the picture.
"""

import xml.etree.ElementTree as ET

import pytest

from benchmarks.moving_picture import PICTURE, draw, words


@pytest.mark.slow
def test_the_picture_shows_what_the_commands_print() -> None:
    drawn = PICTURE.read_text()
    ET.fromstring(drawn)
    assert words(drawn) == words(draw())


def test_it_has_a_script_a_cause_and_a_map() -> None:
    said = "\n".join(words(PICTURE.read_text()))
    for part in ("#SBATCH --account=project_465000001", "remedy ", "rank  CPUs", "file missing"):
        assert part in said
