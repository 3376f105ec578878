"""Many damaged scripts are ported: none stops port, each line is reported once, each job file renders.

Not collected by pytest.

python -m tests.long_port [COUNT]
"""

from __future__ import annotations

import sys

from hpclaunch.errors import BadInputError
from hpclaunch.lint.batch_script import read_script
from hpclaunch.port.port_script import port_script
from hpclaunch.site.load_profile import load_site, site_names
from hpclaunch.site.site_scheduler import site_scheduler
from tests.lint.test_fuzz import damaged
from tests.many_seeds import run_many
from tests.port.fixture_scripts import SCRIPTS, check_report, machine_of, rendered

SITES = [site for site in map(load_site, site_names()) if not site_scheduler(site).starts_at_once]


def port_damaged(seed: int) -> bool:
    """Port one damaged script; return whether it could be read."""
    path = SCRIPTS[seed % len(SCRIPTS)]
    source = machine_of(path.read_bytes().decode())
    target = SITES[seed // len(SCRIPTS) % len(SITES)]
    text = damaged(path, seed).encode(errors="replace").decode().replace("\0", "")
    if source is not None and read_script(text).kind not in (None, source.scheduler.kind):
        source = None
    try:
        ported = port_script(text, source, target)
    except BadInputError as error:
        if not error.message.startswith("line "):
            raise
        return False
    check_report(text, ported)
    rendered(ported)
    return True


def main(count: int) -> None:
    """Port this many damaged scripts; the number of a script that fails is its seed."""
    read, failed = run_many(port_damaged, count)
    print(f"{count} damaged scripts ported, {read} of them read, {failed} failed")
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
