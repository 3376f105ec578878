"""The ports that launch lines give to torchrun, accelerate and the programs themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.lint.program_words import line_of, program_words, torch_run

_ENDPOINT = re.compile(r".*:(\d{2,5})")


def fixed_ports(script: Script) -> Iterator[tuple[int, str, int]]:
    """Yield line, option and port of each port that an option gives as a number."""
    for launch in script.launches:
        run = torch_run(script, launch)
        options = run.options if run else {}
        for name in ("master-port", "rdzv-endpoint"):
            value = options.get(name, "")
            match = (
                _ENDPOINT.fullmatch(value) if name == "rdzv-endpoint" else re.fullmatch(r"(\d{2,5})", value)
            )
            if match and int(match[1]):
                yield _line_of_port(script, launch, match[1]), f"--{name}", int(match[1])
    yield from _ports_of_programs(script)


def _ports_of_programs(script: Script) -> Iterator[tuple[int, str, int]]:
    """Yield the ports that deepspeed, accelerate and programs get as an option."""
    for launch in script.launches:
        run = torch_run(script, launch)
        if run is None or any(name.startswith("$") for name in run.options):
            text = " ".join(program_words(script, launch))
            for match in re.finditer(r"--(master[-_]port|main[-_]process[-_]port)[= ](\d{2,5})(?!\d)", text):
                yield _line_of_port(script, launch, match[2]), f"--{match[1]}", int(match[2])


def _line_of_port(script: Script, launch: Launch, port: str) -> int:
    """Return the line that has the number of a port."""
    made = [one for name in script.variables.assignments for one in script.variables.assignments[name]]
    by_name = [one.line for one in made if one.value is not None and one.value.visible == port]
    inside = script.text[max(launch.command.start, 0) : max(launch.command.end, 0)]
    return by_name[0] if by_name and port not in inside else line_of(script, launch, port)
