"""What ``hpclaunch init`` finds out and writes: where this is, and a first configuration and job file."""

import shutil
from collections.abc import Mapping

import msgspec

from hpclaunch.job.settings_files import config_path
from hpclaunch.scheduler.registry import THIS_MACHINE, get_scheduler, schedulers
from hpclaunch.site.detect import detect_here
from hpclaunch.site.load_profile import load_site


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where ``hpclaunch init`` runs."""

    site: str | None
    """The site whose jobs would be submitted from here; None: a cluster that no profile describes."""
    words: str
    """What was found, in a sentence."""


def look() -> Place:
    """Find out whether this is a known site, another cluster, or a laptop or workstation."""
    found = detect_here()
    if found.site:
        return Place(site=found.site, words=f"This is {found.site}: {found.reason}.")
    for scheduler in schedulers():
        if not scheduler.starts_at_once and shutil.which(scheduler.submit_program):
            words = f"{scheduler.submit_program} is here, but no site profile describes this machine."
            return Place(site=None, words=f"{words} `hpclaunch sites new NAME` writes a profile.")
    tools = [tool for tool in ("nvidia-smi", "rocm-smi", "amd-smi") if shutil.which(tool)]
    kind = f"a workstation with GPUs ({tools[0]} is here)" if tools else "a laptop or workstation"
    return Place(site=THIS_MACHINE, words=f"No scheduler is here: this is {kind}.")


def starts_at_once(site: str) -> bool:
    """Return whether the site has no queue: its jobs run on this machine. Raises BadInputError."""
    return get_scheduler(load_site(site).scheduler.kind).starts_at_once


def config_text(site: str, settings: Mapping[str, object]) -> bytes | None:
    """Return a configuration with the site and its settings; None if the user has one already."""
    if config_path().exists():
        return None
    head = (
        "# Defaults for all your jobs. An option or a job file overrides them: hpclaunch submit --explain\n"
    )
    return _yaml(head, {"site": site, **({"sites": {site: dict(settings)}} if settings else {})})


def job_text(settings: Mapping[str, object]) -> bytes:
    """Return a job file with these settings."""
    head = "# Submit this job: hpclaunch submit --file FILE. All keys: docs/reference/job.md\n"
    return _yaml(head, settings)


def _yaml(head: str, settings: Mapping[str, object]) -> bytes:
    import yaml

    return (head + yaml.safe_dump(dict(settings), sort_keys=False, allow_unicode=True)).encode()
