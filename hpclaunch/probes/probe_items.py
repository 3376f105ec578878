"""What a probe asks, as data: name, command, why. All of it only reads. Pure."""

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from hpclaunch.site.module_facts import loaded_modules
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler
from hpclaunch.software.container_runtimes import RUNTIMES
from hpclaunch.software.shell_quoting import word
from hpclaunch.topology.saved_node import TOOLS


class Item(NamedTuple):
    """One question."""

    name: str
    argv: tuple[str, ...]
    why: str


_ONLINE = "curl -sSI --max-time 10 https://github.com/ > /dev/null && echo reached"
_PROXIES = "env | grep -i '^[a-z]*_proxy=' | sed 's,//[^/@]*@,//,'"
LIMIT_S = 30.0


def login_items(profile: SiteProfile) -> tuple[Item, ...]:
    """Return the questions for the machine on which jobs are submitted."""
    scheduler = site_scheduler(profile)
    asked = {**scheduler.facts_commands, **scheduler.probe_commands}
    of_scheduler = (Item(name, argv, scheduler.title) for name, argv in asked.items())
    return (*of_scheduler, *_software(profile), *_surroundings(profile))


def _software(profile: SiteProfile) -> Iterator[Item]:
    setup = "; ".join(line.text for line in profile.software.setup if "module" in line.text)
    if names := list(dict.fromkeys(module.name for module in loaded_modules(profile))):
        words = " ".join(map(shlex.quote, names))
        loaded = f"{{ {setup}; }} > /dev/null 2>&1; " if setup else ""
        look = f'{loaded}for m in {words}; do module is-avail "$m" 2> /dev/null && echo "$m"; done; true'
        yield Item("modules", ("bash", "-lc", look), "modules that the profile names")
    programs = " ".join(name for name, one in RUNTIMES.items() if one.start not in ("engine", "pyxis"))
    version = 'echo "$p $("$p" --version 2>&1 | head -n 1)"'
    look = f'for p in {programs}; do command -v "$p" > /dev/null && {version}; done; true'
    yield Item("container runtimes", ("bash", "-lc", look), "programs that start containers")


def _surroundings(profile: SiteProfile) -> Iterator[Item]:
    for name, storage in profile.storage.items():
        yield Item(
            f"storage {name}",
            ("bash", "-lc", f"df -PT -- {word(storage.path)}"),
            "a file system of the profile",
        )
    yield Item("quota", ("bash", "-lc", "quota -s 2> /dev/null || lfs quota -h -u $USER $HOME"), "quotas")
    yield Item("proxies", ("bash", "-lc", _PROXIES + "; true"), "proxy variables, without passwords")
    yield Item("internet", ("bash", "-lc", _ONLINE), "whether this machine reaches the internet")


MARK = "hpclaunch-probe"
"""Begins lines of the job's log: ``MARK begin NAME``, ``MARK end NAME EXIT`` (``remote/probe_node.sh``)."""


def node_command(script: str) -> tuple[str, ...]:
    """Return the command of the two ranks that look at a node; ``script``: the text of probe_node.sh."""
    words = []
    for tool in TOOLS:
        commands = (shlex.join(("timeout", f"{tool.limit_s:g}", *argv)) for argv in tool.commands)
        words += [tool.file, " && ".join(commands)]
    return ("bash", "-c", script, "probe", *words)
