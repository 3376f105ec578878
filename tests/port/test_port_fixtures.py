"""Every script of lint's tests is ported: its lines are reported, the new script is right for its site."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.lint.batch_script import read_script
from hpclaunch.lint.lint_script import site_of
from hpclaunch.port.port_script import port_script
from hpclaunch.port.port_text import check_text
from hpclaunch.site.load_profile import load_all, load_site, site_names
from hpclaunch.site.site_scheduler import site_scheduler
from tests.port.fixture_scripts import SCRIPTS, check_report, machine_of, port_and_render
from tests.profiles import shipped

pytestmark = pytest.mark.slow  # together

SITES = [name for name in site_names() if not site_scheduler(shipped(name)).starts_at_once]
# Each script goes to one site in turn; the long test takes all of them to several.
PAIRS = [(path, SITES[number % len(SITES)]) for number, path in enumerate(SCRIPTS)]


@pytest.mark.parametrize(("path", "to"), PAIRS, ids=lambda part: getattr(part, "name", part))
def test_a_ported_fixture_reports_each_line_renders_and_lints_clean(path: Path, to: str) -> None:
    text = path.read_bytes().decode()
    ported, _ = port_and_render(text, machine_of(text), to)
    check_report(text, ported)
    assert ported.settings["site"] == to


@pytest.mark.long
@pytest.mark.parametrize("to", ["lumi-g", "polaris", "summit", "olivia", "generic-slurm", "generic-flux"])
def test_all_fixtures_to_several_sites(to: str) -> None:
    for path in SCRIPTS:
        text = path.read_bytes().decode()
        check_report(text, port_and_render(text, machine_of(text), to)[0])


CAPTURES = Path(os.environ.get("HPCLAUNCH_TEST_CAPTURES", "/nonexistent")) / "scripts" / "real" / "scripts"

if CAPTURES.is_dir():

    @pytest.mark.parametrize("to", ["polaris", pytest.param("lumi-g", marks=pytest.mark.long)])
    def test_scripts_of_other_people_to(to: str) -> None:
        profiles, _ = load_all()
        read = 0
        for path in sorted(CAPTURES.iterdir()):
            if re.match(rb"#!\s*(/bin/csh|.*\b(python|perl))", path.read_bytes()):
                continue
            text = check_text(path.name, path.read_bytes())
            name = site_of(read_script(text), profiles)
            ported, _ = port_and_render(text, profiles[name] if name else None, to)
            check_report(text, ported)
            read += 1
        assert read > 400


@pytest.mark.parametrize("to", SITES)
def test_a_script_goes_to_every_site(to: str) -> None:
    text = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4 -t 1:00:00\nsrun ./train\n"
    ported, script = port_and_render(text, None, to)
    assert ported.settings["nodes"] * ported.settings["tasks_per_node"] == 8
    assert "./train" in script


def test_a_site_without_a_queue_is_refused() -> None:
    with pytest.raises(BadInputError, match="has no queue"):
        port_script("#!/bin/bash\n#SBATCH -N 2\nsrun ./train\n", None, load_site("local"))
