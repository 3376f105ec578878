"""Detect the site of this machine from evidence, never by a guess.

Strong evidence: Slurm's ClusterName, variables and host names that no other site has. Weak evidence: host
names that several sites share (nid* exists at LUMI, Alps and Perlmutter alike) and GPU models; it is reported
and never decides.
"""

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
from hpclaunch.site.schema import Detect, SiteProfile

SCONTROL_LIMIT_S = 10


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One observation that fits a site."""

    site: str
    strength: Literal["strong", "weak"]
    what: str


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict."""

    site: str | None
    reason: str
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts read on this machine."""

    environ: Mapping[str, str] = {}
    hostname: str
    cluster_name: str | None = None
    gpu_models: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def detect(facts: Facts, profiles: Mapping[str, SiteProfile]) -> Detection:
    """Compare the facts with the profiles, given by name. Pure."""
    evidence = tuple(
        item for site, profile in profiles.items() for item in _evidence(site, profile.detect, facts)
    )
    site, reason = _verdict(evidence, profiles)
    return Detection(site=site, reason=reason, evidence=evidence, notes=facts.notes)


def _evidence(site: str, signs: Detect, facts: Facts) -> Iterator[Evidence]:
    for what in _strong_signs(signs, facts):
        yield Evidence(site=site, strength="strong", what=what)
    for what in _weak_signs(signs, facts):
        yield Evidence(site=site, strength="weak", what=what)


def _strong_signs(signs: Detect, facts: Facts) -> Iterator[str]:
    cluster = facts.cluster_name
    if cluster and cluster.lower() in map(str.lower, signs.cluster_names):
        in_environment = facts.environ.get("SLURM_CLUSTER_NAME") == cluster
        name = "SLURM_CLUSTER_NAME" if in_environment else "scontrol show config: ClusterName"
        yield f"{name} is {cluster}"
    for variable, pattern in signs.env.items():
        value = facts.environ.get(variable)
        if value is not None and re.fullmatch(pattern, value):
            yield f"{variable} is {value}"
    if _matches_host(signs.hostnames_unique, facts):
        yield f"host name {facts.hostname}, which only this site has"


def _weak_signs(signs: Detect, facts: Facts) -> Iterator[str]:
    if _matches_host(signs.hostnames, facts) and not _matches_host(signs.hostnames_unique, facts):
        yield f"host name {facts.hostname}, which other sites may have too"
    for model in sorted(set(facts.gpu_models)):
        if _any_match(signs.gpu_models, (model,)):
            yield f"GPU {model}, which other sites have too"


def _matches_host(patterns: Iterable[str], facts: Facts) -> bool:
    return _any_match(patterns, (facts.hostname, facts.hostname.partition(".")[0]))


def _any_match(patterns: Iterable[str], texts: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns for text in texts)


def _verdict(evidence: tuple[Evidence, ...], profiles: Mapping[str, SiteProfile]) -> tuple[str | None, str]:
    strong = [item for item in evidence if item.strength == "strong"]
    named = {item.site for item in strong}
    sites = sorted(named.difference(*(bases_of(site, profiles) for site in named)))
    if len(sites) == 1:
        return sites[0], "; ".join(item.what for item in strong if item.site == sites[0])
    if sites:
        return None, f"strong evidence contradicts itself: it names {' and '.join(sites)}"
    if evidence:
        names = sorted({item.site for item in evidence})
        return None, f"only weak evidence ({', '.join(names)}), which never decides"
    return None, "no evidence for any site"


def bases_of(site: str, profiles: Mapping[str, SiteProfile]) -> list[str]:
    """Return all that a profile starts from, the nearest first."""
    found = [site]
    while (base := getattr(profiles.get(found[-1]), "base", None)) and base not in found:
        found.append(base)
    return found[1:]


def gather(environ: Mapping[str, str] = os.environ) -> Facts:
    """Read environment, host name, GPU drivers, and ask Slurm where the environment has no cluster name."""
    cluster_name, notes = _cluster_name(environ)
    return Facts(
        environ=environ,
        hostname=socket.gethostname(),
        cluster_name=cluster_name,
        gpu_models=_gpu_models(Path(environ.get("HPCLAUNCH_SYSROOT") or "/")),
        notes=notes,
    )


def detect_here(loaded: tuple[dict[str, SiteProfile], dict[str, str]] | None = None) -> Detection:
    """Read the facts of this machine and compare them with all profiles that can be read, or are loaded."""
    profiles, broken = loaded or load_all()
    facts = gather()
    unread = tuple(f"profile {name} cannot be read: {error}" for name, error in broken.items())
    return detect(msgspec.structs.replace(facts, notes=(*facts.notes, *unread)), profiles)


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
    problem = (answer.stderr.strip().splitlines() or ["no ClusterName in its answer"])[0]
    return None, (f"scontrol show config: {problem}",)


def _gpu_models(root: Path) -> tuple[str, ...]:
    """Return the GPUs' names that the drivers publish below ``root``; no program is started.

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
    except OSError:  # the GPU is gone, or users may not read this file of the driver
        return ""
