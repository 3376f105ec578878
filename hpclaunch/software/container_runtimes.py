"""The programs that start containers, ``container_runtimes.json``: images, binds, a job's variables. Pure."""

import re
from typing import Literal

import msgspec

from hpclaunch.package_data import text_beside
from hpclaunch.site.job_environment import JobContainer
from hpclaunch.site.schema import Container, SiteProfile


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """One program, or one option of the launcher."""

    sources: tuple[str, ...]
    start: Literal["exec", "shifter", "podman", "pyxis", "engine"]
    binds: str = ""
    pairs: bool = False
    verbs: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    binds_by: tuple[str, ...] = ()
    image_by: tuple[str, ...] = ()
    overrides: bool = False
    gpu: dict[str, str] = {}
    refused: str = r"(?!)"
    instead: str = ""


ENGINE = "container-engine"
"""The runtime of CSCS: srun --environment=FILE, where FILE is a TOML file (EDF)."""
RUNTIMES = msgspec.json.decode(text_beside(__file__, "container_runtimes.json"), type=dict[str, Runtime])
"""Name, as profiles and ``--container-runtime`` have it -> what it needs."""


def documented(profile: SiteProfile) -> dict[str, Container]:
    """Return the runtimes that a site documents, the usual one first."""
    site = profile.software.container
    if site is None or site.runtime == "none":
        return {}
    also: dict[str, Container] = {each.runtime: each for each in profile.software.other_containers}
    return {site.runtime: site, **also, site.runtime: site}


def runtime_of(profile: SiteProfile, container: JobContainer | None = None) -> str:
    """Return the name of the runtime of a job: the one that it names, else the site's, else Apptainer."""
    if container is not None and container.runtime is not None:
        return container.runtime
    return next(iter(documented(profile)), "apptainer")


def facts_of(profile: SiteProfile, container: JobContainer | None = None) -> Container | None:
    """Return what the site documents about the runtime of a job."""
    return documented(profile).get(runtime_of(profile, container))


def is_guessed(profile: SiteProfile, container: JobContainer) -> str | None:
    """Return a note where no page was found that states the runtime of a job's container."""
    name = runtime_of(profile, container)
    if facts_of(profile, container) is not None:
        return None
    why = "" if container.runtime else "; --container-runtime names another one"
    return f"no container runtime is documented for {profile.name}: the script starts {name}{why}"


def undocumented(profile: SiteProfile, container: JobContainer) -> str | None:
    """Return why the site cannot start a job's container, by what its profile knows; None: it can.

    Where nothing is known the runtime that the job names counts, and on a machine that no profile describes
    Apptainer where it names none.
    """
    name, launcher = runtime_of(profile, container), profile.scheduler.launcher
    return _unknown_runtime(profile, container) or _unfit(container, name, launcher)


def _unfit(container: JobContainer, name: str, launcher: str) -> str | None:
    """Return why a runtime cannot take an image, the binds of a job, or the launcher."""
    fits = RUNTIMES[name]
    if re.fullmatch(fits.refused, container.image):
        instead = f"; {fits.instead}" if fits.instead else ""
        return f"container: image: {container.image} cannot be started by {name}{instead}"
    if fits.pairs and any("," in bind for bind in container.binds):
        return f"container: binds: {name} separates them by commas, so none may have one in its name"
    if fits.start in ("pyxis", "engine") and launcher != "srun":
        return f"container: {name} is an option of srun, and ranks are started by {launcher} here"
    return None


def _unknown_runtime(profile: SiteProfile, container: JobContainer) -> str | None:
    """Return that a site has not the runtime, or that none is known there."""
    known, name, site = documented(profile), runtime_of(profile, container), profile.software.container
    if site is not None and site.runtime == "none":
        return f"container: {profile.name} has no container runtime"
    if known and name not in known:
        return f"container: {profile.name} has {' and '.join(known)}, not {name}"
    if known or container.runtime is not None or profile.status != "production":
        return None
    return (
        f"container: our profile of {profile.name} knows no container runtime; --container-runtime names"
        f" one all the same: {', '.join(RUNTIMES)}"
    )
