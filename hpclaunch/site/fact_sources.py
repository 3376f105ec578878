"""Which facts of a profile come from which page, how old and how well founded they are. Pure."""

import datetime as dt
import re
from collections.abc import Mapping
from itertools import groupby
from typing import get_args

import msgspec

from hpclaunch.package_data import package_constants, resource_dir, text_beside
from hpclaunch.site.schema import Evidence, NodeKind, SiteProfile


class ReadSource(msgspec.Struct, frozen=True, kw_only=True):
    """One source of facts, and the sites whose profiles cite it."""

    url: str
    checked: dt.date
    age_days: int
    evidence: str
    names: tuple[str, ...]
    sites: tuple[str, ...]


class CountedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How well a machine is known."""

    by_evidence: dict[str, int]
    unknown: int
    newest: dt.date | None
    subjects: dict[str, str]
    lines: int | None


def read_sources(profiles: Mapping[str, SiteProfile | NodeKind], today: dt.date) -> list[ReadSource]:
    """Return the sources of profiles (none retired) and node kinds, oldest first, each page and day once."""
    cited: dict[tuple[dt.date, str, str], dict[str, set[str]]] = {}
    for site, profile in profiles.items():
        if isinstance(profile, SiteProfile) and profile.retired is not None:
            continue
        for name, source in profile.sources.items():
            names = cited.setdefault((source.checked, source.url, source.evidence), {})
            names.setdefault(name, set()).add(site)
    return [
        ReadSource(
            url=url,
            checked=checked,
            age_days=(today - checked).days,
            evidence=evidence,
            names=tuple(sorted(names)),
            sites=tuple(sorted(set().union(*names.values()))),
        )
        for (checked, url, evidence), names in sorted(cited.items())
    ]


def _cited(profile: SiteProfile | NodeKind) -> dict[tuple[str, ...], str]:
    cited: dict[tuple[str, ...], str] = {}
    from hpclaunch.site.profile_rules import structs_of  # it reads YAML, and lists of sites need none

    for path, part in structs_of(profile, ()):
        for field in part.__struct_fields__:
            source = getattr(part, field)
            if field.endswith("source") and isinstance(source, str):
                about = field.removesuffix("source").rstrip("_")  # version_source: of the version only
                # Without the numbers of list items, and without an empty key.
                cited[tuple(key for key in (*path, about) if isinstance(key, str) and key)] = source
    return cited


def fact_sources(profile: SiteProfile | NodeKind) -> dict[str, tuple[str, ...]]:
    """Return the key of each source -> the keys of the facts that cite it.

    A mapping whose parts all cite the same source is named once: ``queues``, not each queue.
    """
    cited = _cited(profile)
    facts: dict[str, list[str]] = {name: [] for name in profile.sources}
    for top, group in groupby(sorted(cited), key=lambda path: path[0]):
        paths = list(group)
        names = {cited[path] for path in paths}
        if len(names) == 1:
            facts[names.pop()].append(top)
        else:
            for path in paths:
                facts[cited[path]].append(".".join(path))
    return {name: tuple(dict.fromkeys(found)) for name, found in facts.items()}


EVIDENCE = get_args(Evidence)
"""The kinds of evidence, the best first."""
SUBJECTS = msgspec.json.decode(text_beside(__file__, "fact_subjects.json"), type=dict[str, str])
"""The questions about a machine -> the beginning of the keys of its facts."""


def counted_facts(profile: SiteProfile) -> CountedFacts:
    """Count the facts of a profile by their evidence."""
    counts = dict.fromkeys(EVIDENCE, 0)
    for name, keys in fact_sources(profile).items():
        counts[profile.sources[name].evidence] += len(keys)
    file = resource_dir("site_profiles") / f"{profile.name}.yaml"
    return CountedFacts(
        by_evidence=counts,
        unknown=len(unknown_facts(profile)),
        newest=max((source.checked for source in profile.sources.values()), default=None),
        subjects={name: _known(profile, keys) for name, keys in SUBJECTS.items()},
        lines=len(file.read_text(encoding="utf-8").splitlines()) if file.exists() else None,
    )


def _known(profile: SiteProfile, keys: str) -> str:
    cited = [name for path, name in _cited(profile).items() if re.match(rf"({keys})\b", ".".join(path))]
    kinds = sorted({EVIDENCE.index(profile.sources[name].evidence) for name in cited})
    day = max((str(profile.sources[name].checked) for name in cited), default="unknown")
    return day + "".join("mdcsux"[kind] for kind in kinds)


_WORD = package_constants("site/forms.json", "fact_sources")
_NOT_KNOWN: tuple[object, ...] = (None, "unknown", (), {})


def unknown_facts(profile: SiteProfile) -> tuple[str, ...]:
    """Return the facts that every machine has and this profile leaves out: they are unknown, not "none"."""
    gpus = len(profile.node.gpus) if profile.node else 0
    needless = {"links.gpu_gpu": gpus < 2, "links.cpu_gpu": gpus < 1}
    return tuple(key for key in _WORD.facts.split() if not needless.get(key) and _is_unknown(profile, key))


def _is_unknown(profile: SiteProfile, key: str) -> bool:
    above, _, name = key.rpartition(".")
    part = getattr(profile, above) if above else profile
    return part is not None and getattr(part, name) in _NOT_KNOWN
