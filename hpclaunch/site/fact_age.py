"""How old the facts of the profiles are, and how well founded. Pure."""

import datetime as dt
from collections.abc import Mapping

import msgspec

from hpclaunch.site.schema import NodeKind, SiteProfile


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
    """Return the sources of the profiles and node kinds, the oldest first; each page and day once.

    Retired machines are left out: their facts no longer change.
    """
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
