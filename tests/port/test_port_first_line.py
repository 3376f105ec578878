"""The first line of a script: whether the shell that it starts is the one of the new script."""

from __future__ import annotations

from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import rendered
from tests.port.test_port_lines import fate, port

LOGIN = ("#!/bin/bash -l", "#!/bin/bash --login", "#!/usr/bin/bash -el", "#!/bin/sh -l")
OTHERS = ("#!/bin/bash", "#!/bin/bash -e", "#!/bin/sh", "#!/usr/bin/env bash", "#!/bin/bash -x --noprofile")


@in_one_test("first", [*LOGIN, *OTHERS])
def test_the_first_line_is_called_kept_where_the_script_has_it(first: str) -> None:
    for to in ("polaris", "olivia", "generic-lsf"):
        ported = port(f"{first}\n#SBATCH -N 1 -n 4 -t 10\nsrun ./a\n", source=None, to=to)
        _, script = rendered(ported)
        kind, said = fate(ported, 1)
        here = script.partition("\n")[0]
        assert here in (first, "#!/bin/bash -l") if kind == "kept" else here == said
        (why,) = [one.why for one in ported.report.changed if one.line == 1] or [""]
        assert ("no login shell" in why) is (first in LOGIN and to != "polaris")


def test_a_login_shell_is_asked_for_where_no_variables_are_handed_on() -> None:
    body = "#SBATCH -N 1 -n 4 -t 10\nsrun ./a\n"
    said = "line 1: a login shell, which hpclaunch's script for"
    assert said in str(port(f"#!/bin/bash -l\n{body}", source=None, to="abci").to_do)
    assert said not in str(port(f"#!/bin/bash -e\n{body}", source=None, to="abci").to_do)
