"""Asking a machine the questions of a probe: on the login node, and by one small job on a node."""

import datetime as dt
import getpass
import os
import re
import shlex
import socket
from collections.abc import Callable, Iterator, Sequence

from hpclaunch import __version__
from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.probes.private_names import Names, without_secrets
from hpclaunch.probes.probe_file import Answer, ProbeFile
from hpclaunch.probes.probe_items import LIMIT_S, MARK, Item, login_items
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler

_MOST = 400_000
"""Characters of one answer that are kept; a longer one is left out whole."""


def ask_login(host: Host, profile: SiteProfile, site: str, say: Callable[[str], None]) -> ProbeFile:
    """Ask all questions for the login node; nothing is changed there. ``say`` gets each of them."""
    scheduler = site_scheduler(profile)
    answers = {}
    for item in login_items(profile):
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
