"""Which site is this? By evidence, never by a guess.

Strong evidence: Slurm's ClusterName, variables and host names that no other site has. Weak evidence: host
names that several sites share (nid* exists at LUMI, Alps and Perlmutter alike) and GPU models; it is reported
and never decides.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import NoAnswerError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.site.load_profile import load_all
from hpclaunch.site.schema import SiteProfile

SCONTROL_LIMIT_S = 10


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One observation that fits a site."""

    site: str
    strength: Literal["strong", "weak"]
    what: str
    """What was seen, in words."""


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict."""

    site: str | None
    """None: unknown."""
    reason: str
    """Why, in a sentence."""
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be asked."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine tells about itself."""

    environ: Mapping[str, str]
    hostname: str
    cluster_name: str | None = None
    gpu_models: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def detect(
    environ: Mapping[str, str],
    hostname: str,
    cluster_name: str | None,
    gpu_models: Iterable[str],
    profiles: Mapping[str, SiteProfile],
    notes: tuple[str, ...] = (),
) -> Detection:
    """Weigh what was seen against the profiles (by name). Pure."""
    models = tuple(gpu_models)
    evidence = tuple(
        item
        for name, profile in profiles.items()
        for item in _evidence(name, profile, environ, hostname, cluster_name, models)
    )
    site, reason = _verdict(evidence, profiles)
    return Detection(site=site, reason=reason, evidence=evidence, notes=notes)


def _evidence(
    name: str,
    profile: SiteProfile,
    environ: Mapping[str, str],
    hostname: str,
    cluster_name: str | None,
    gpu_models: tuple[str, ...],
) -> Iterator[Evidence]:
    signs = profile.detect
    hosts = (hostname, hostname.partition(".")[0])
    if cluster_name and cluster_name.lower() in (known.lower() for known in signs.cluster_names):
        inside = environ.get("SLURM_CLUSTER_NAME") == cluster_name
        asked = "SLURM_CLUSTER_NAME" if inside else "scontrol show config: ClusterName"
        yield Evidence(site=name, strength="strong", what=f"{asked} is {cluster_name}")
    for variable, pattern in signs.env.items():
        if variable in environ and re.fullmatch(pattern, environ[variable]):
            yield Evidence(site=name, strength="strong", what=f"{variable} is {environ[variable]}")
    if _any_match(signs.hostnames_unique, hosts):
        yield Evidence(site=name, strength="strong", what=f"host name {hostname}, which only this site has")
    elif _any_match(signs.hostnames, hosts):
        yield Evidence(
            site=name, strength="weak", what=f"host name {hostname}, which other sites may have too"
        )
    for model in sorted({model for model in gpu_models if _any_match(signs.gpu_models, (model,))}):
        yield Evidence(site=name, strength="weak", what=f"GPU {model}, which other sites have too")


def _any_match(patterns: Iterable[str], texts: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns for text in texts)


def _verdict(evidence: tuple[Evidence, ...], profiles: Mapping[str, SiteProfile]) -> tuple[str | None, str]:
    strong = sorted({item.site for item in evidence if item.strength == "strong"})
    bases = {base for site in strong for base in _bases(site, profiles)}
    sites = [site for site in strong if site not in bases]
    if len(sites) == 1:
        signs = [item.what for item in evidence if item.site == sites[0] and item.strength == "strong"]
        return sites[0], "; ".join(signs)
    if sites:
        return None, f"strong evidence contradicts itself: it names {' and '.join(sites)}"
    weak = sorted({item.site for item in evidence})
    if weak:
        return None, f"only weak evidence ({', '.join(weak)}), which never decides"
    return None, "nothing here is known of any site"


def _bases(site: str, profiles: Mapping[str, SiteProfile]) -> set[str]:
    """Return all that a profile extends, directly or not."""
    found: set[str] = set()
    profile = profiles.get(site)
    while profile is not None and profile.extends and profile.extends not in found | {site}:
        found.add(profile.extends)
        profile = profiles.get(profile.extends)
    return found


def gather(environ: Mapping[str, str] = os.environ) -> Facts:
    """Ask this machine: environment, host name, GPU drivers, and Slurm where the environment is silent."""
    cluster_name, notes = _cluster_name(environ)
    return Facts(
        environ=environ,
        hostname=socket.gethostname(),
        cluster_name=cluster_name,
        gpu_models=_gpu_models(Path(environ.get("HPCLAUNCH_SYSROOT") or "/")),
        notes=notes,
    )


def detect_here() -> Detection:
    """Gather what this machine tells and weigh it against all profiles that can be read."""
    profiles, broken = load_all()
    facts = gather()
    unread = tuple(f"profile {name} cannot be read: {error}" for name, error in broken.items())
    return detect(
        facts.environ,
        facts.hostname,
        facts.cluster_name,
        facts.gpu_models,
        profiles,
        (*facts.notes, *unread),
    )


def _cluster_name(environ: Mapping[str, str]) -> tuple[str | None, tuple[str, ...]]:
    if name := environ.get("SLURM_CLUSTER_NAME"):
        return name, ()
    import shutil  # not where the environment answers

    scontrol = shutil.which("scontrol", path=environ.get("PATH"))
    if scontrol is None:
        return None, ()
    try:
        answer = LocalHost().run((scontrol, "show", "config"), timeout_s=SCONTROL_LIMIT_S, env=environ)
    except NoAnswerError:
        return None, (f"scontrol show config did not answer within {SCONTROL_LIMIT_S} s",)
    except RefusedError as error:
        return None, (error.message,)
    match = re.search(r"^ClusterName\s*=\s*(\S+)", answer.stdout, re.MULTILINE)
    if match:
        return match[1], ()
    said = (answer.stderr.strip().splitlines() or ["no ClusterName in its answer"])[0]
    return None, (f"scontrol show config: {said}",)


def _gpu_models(root: Path) -> tuple[str, ...]:
    """Return the GPUs' names that the drivers publish below ``root``: no tool of theirs is started.

    NVIDIA: ``Model:`` in /proc/driver/nvidia/gpus/*/information. AMD: gfx_target_version in the properties of
    /sys/class/kfd/kfd/topology/nodes/*, decimal major x 10000 + minor x 100 + stepping (90010: gfx90a; 0: a
    CPU).
    """
    models = []
    for file in sorted(root.glob("proc/driver/nvidia/gpus/*/information")):
        models += re.findall(r"^Model:\s*(\S.*?)\s*$", _text(file), re.MULTILINE)
    for file in sorted(root.glob("sys/class/kfd/kfd/topology/nodes/*/properties")):
        for number in re.findall(r"^gfx_target_version\s+(\d+)\s*$", _text(file), re.MULTILINE):
            major, rest = divmod(int(number), 10000)
            minor, stepping = divmod(rest, 100)
            models += [f"gfx{major}{minor:x}{stepping:x}"] if major else []
    return tuple(models)


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:  # a GPU that vanished, or a file of the driver's that users may not read
        return ""
