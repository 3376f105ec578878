"""Asking a machine the questions of a probe: on the login node, and by one small job on a node."""

import datetime as dt
import getpass
import os
import re
import shlex
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hpclaunch import __version__
from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.probes.compare_probe import Answer, Names, ProbeFile, without_secrets
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.module_facts import loaded_modules
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler
from hpclaunch.software.containers import RUNTIMES
from hpclaunch.software.script_lines import word
from hpclaunch.topology.source_kinds import SOURCE_KINDS


class Item(NamedTuple):
    """One question."""

    name: str
    argv: tuple[str, ...]
    why: str


_ONLINE = "curl -sSI --max-time 10 https://github.com/ > /dev/null && echo reached"
_PROXIES = "env | grep -i '^[a-z]*_proxy=' | sed 's,//[^/@]*@,//,'"
LIMIT_S = 30.0


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
        look = f"df -PT -- {word(storage.path)}"
        yield Item(f"storage {name}", ("bash", "-lc", look), "a file system of the profile")
    yield Item("quota", ("bash", "-lc", "quota -s 2> /dev/null || lfs quota -h -u $USER $HOME"), "quotas")
    yield Item("proxies", ("bash", "-lc", _PROXIES + "; true"), "proxy variables, without passwords")
    yield Item("internet", ("bash", "-lc", _ONLINE), "whether this machine reaches the internet")


MARK = "hpclaunch-probe"
"""Begins lines of the job's log: ``MARK begin NAME``, ``MARK end NAME EXIT`` (``remote/probe_node.sh``)."""


def node_command(script: str) -> tuple[str, ...]:
    """Return the command of the two ranks that look at a node; ``script``: the text of probe_node.sh."""
    words = []
    for tool in (kind for kind in SOURCE_KINDS.values() if kind.commands):
        commands = (shlex.join(("timeout", f"{tool.limit_s:g}", *argv)) for argv in tool.commands)
        words += [tool.file, " && ".join(commands)]
    return ("bash", "-c", script, "probe", *words)


_MOST = 400_000
"""Characters of one answer that are kept; a longer one is left out whole."""


def ask_login(host: Host, profile: SiteProfile, site: str, say: Callable[[str], None]) -> ProbeFile:
    """Ask all questions for the login node; nothing is changed there. ``say`` gets each of them."""
    scheduler = site_scheduler(profile)
    asked = {**scheduler.facts_commands, **scheduler.probe_commands}
    of_scheduler = (Item(name, argv, scheduler.title) for name, argv in asked.items())
    answers = {}
    for item in (*of_scheduler, *_software(profile), *_surroundings(profile)):
        say(f"{item.name}: {item.why}")
        answers[item.name] = _answer(host, scheduler, item)
    return ProbeFile(
        hpclaunch=__version__, day=dt.date.today(), site=site, scheduler=scheduler.kind, login=answers
    )


def _answer(host: Host, scheduler: Scheduler, item: Item) -> Answer:
    command = shlex.join(item.argv)
    try:
        found = host.run(item.argv, timeout_s=LIMIT_S, env={**scheduler.query_env, "LC_ALL": "C"})
    except RefusedError as error:
        return Answer(command=command, exit_code=None, stderr=error.message)
    stdout = without_secrets(scheduler.shortened(item.name, found.stdout))
    if len(stdout) > _MOST:
        return Answer(command=command, exit_code=None, stderr=f"{len(stdout)} characters: left out")
    return Answer(command=command, exit_code=found.exit_code, stdout=stdout, stderr=found.stderr[:4000])


def node_answers(log: str) -> dict[str, Answer]:
    """Return the answers in the log of the job that ran ``node_command``. Pure."""
    pattern = rf"^{MARK} begin (.+)\n((?:.*\n)*?){MARK} end \1 (\d+)$"
    return {
        name: Answer(command=name, exit_code=int(code), stdout=without_secrets(text))
        for name, text, code in re.findall(pattern, log, re.MULTILINE)
    }


def private_names(probe: ProbeFile, more: Sequence[str] = ()) -> Names:
    """Return the names of this user, this host, and those of nodes and accounts in the answers.

    ``more``: names of accounts that the job was charged to.
    """
    texts = [answer.stdout for answer in (*probe.login.values(), *probe.node.values())]
    hosts = [socket.gethostname(), socket.getfqdn(), *_found(r"\bNode(?:Name|HostName|Addr)=(\S+)", texts)]
    hosts += _found(r"^(?:SLURMD_NODENAME|SLURM_SUBMIT_HOST|HOSTNAME|PBS_O_HOST)=(\S+)", texts)
    hosts += _found(r"^SlurmctldHost\[\d\]\s*=\s*([^\s(]+)", texts)
    associations = probe.login.get("associations")
    accounts = [line.partition("|")[0] for line in (associations.stdout if associations else "").splitlines()]
    accounts += _found(r"^(?:SLURM_JOB_ACCOUNT|PBS_ACCOUNT|LSB_PROJECT_NAME)=(\S+)", texts)
    for allowed in _found(r"\b(?:Allow|Deny)(?:Accounts|Groups)=(\S+)", texts):
        accounts += allowed.split(",")
    return Names(
        users=(getpass.getuser(), *_found(r"^SLURM_JOB_USER=(\S+)", texts)),
        homes=(os.path.expanduser("~"), *_found(r"^HOME=(\S+)", texts)),
        hosts=tuple(host for host in dict.fromkeys(hosts) if not re.fullmatch(r"[\d.:]+", host)),
        accounts=(*filter(None, accounts), *more),
    )


def _found(pattern: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from re.findall(pattern, text, re.MULTILINE)
