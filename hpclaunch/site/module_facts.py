"""The modules that a profile loads: each with its version, and compared with what a site announced. Pure."""

import datetime as dt
import html
import re
from collections.abc import Iterator

import msgspec

from hpclaunch.amounts import grouped
from hpclaunch.site.schema import SiteProfile

_LOAD = re.compile(r"\bmodule +(?:-q +)?load +([^;&|#]*)")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_DATES = (
    re.compile(r"(?<![\w/.-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?![\w-])"),  # not the version of a module
    re.compile(rf"(?P<m>{_MONTH})\s+(?P<d>{_DAY}),?\s+(?P<y>\d{{4}})", re.IGNORECASE),
    re.compile(rf"(?P<d>{_DAY})\s+(?P<m>{_MONTH})\s+(?P<y>\d{{4}})", re.IGNORECASE),
)
_HEADING = 60
"""Characters at the beginning of a line in which the date of an entry stands."""


class LoadedModule(msgspec.Struct, frozen=True, kw_only=True):
    """A module that jobs at a site load."""

    name: str
    key: str
    since: dt.date | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One change that a site announced."""

    day: dt.date
    text: str


class ChangedModule(msgspec.Struct, frozen=True, kw_only=True):
    """A module of the profile that an entry names which is newer than what the profile is based on."""

    site: str
    module: str
    keys: tuple[str, ...]
    known: dt.date | None
    changed: dt.date
    entry: str


def loaded_modules(profile: SiteProfile) -> Iterator[LoadedModule]:
    """Yield the modules that the setup, the offers, containers and EasyBuild load."""
    software = profile.software
    for number, step in enumerate(software.setup):
        yield from _in_text(step.text, f"software.setup.{number}")
    for goal, offer in software.offers.items():
        key = f"software.offers.{goal}"
        for name in offer.environment.modules:
            yield LoadedModule(name=name, key=key, since=offer.since)
        for text in offer.install:
            yield from _in_text(text, f"{key}.install")
    for text in software.container.modules if software.container else ():
        yield from _in_text(text, "software.container.modules")
    for name in software.easybuild.modules if software.easybuild else ():
        yield LoadedModule(name=name, key="software.easybuild.modules")


def _in_text(text: str, key: str) -> Iterator[LoadedModule]:
    for words in _LOAD.findall(text):
        yield from (LoadedModule(name=name, key=key) for name in words.split() if name[0] not in "$-\"'")


def without_version(profile: SiteProfile) -> Iterator[str]:
    """Yield a sentence for each module that is loaded without a version and without a reason."""
    names = [(module.name, module.key) for module in loaded_modules(profile) if "/" not in module.name]
    bare = grouped(pair for pair in names if pair[0] not in profile.software.unversioned)
    for name, keys in bare.items():
        right = f"write {name}/VERSION, or say in software.unversioned why it has none"
        yield f"{', '.join(keys)}: module {name} has no version; {right}"


def entries_of(page: str) -> list[Entry]:
    """Return the dated entries of a page, as text or HTML; an entry begins with a line that has its day."""
    if re.search(r"<(html|body|h\d|p|div)\b", page, re.IGNORECASE):
        page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL | re.IGNORECASE)
        page = re.sub(r"<(h\d|p|li|br|tr|div|dt|section)\b[^>]*>", "\n", page, flags=re.IGNORECASE)
        page = html.unescape(re.sub(r"<[^>]+>", "", page))
    entries: list[Entry] = []
    for line in filter(None, map(str.strip, page.splitlines())):
        if day := _day_in(line[:_HEADING]):
            entries.append(Entry(day=day, text=line))
        elif entries:
            entries[-1] = Entry(day=entries[-1].day, text=f"{entries[-1].text}\n{line}")
    return entries


def _day_in(text: str) -> dt.date | None:
    for pattern in _DATES:
        if found := pattern.search(text):
            month, day = found["m"], re.sub(r"\D", "", found["d"])
            number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
            try:
                return dt.date(int(found["y"]), number, int(day))
            except ValueError:
                continue
    return None


def changed_modules(profile: SiteProfile, entries: list[Entry]) -> list[ChangedModule]:
    """Return the modules of a profile that a newer entry names, each with its newest one.

    What counts as known is the newest entry that was read for the profile (``changes``), or the day from
    which the site has the module: the day on which its page was read says nothing about changes before it.
    """
    read = [log.last_entry for log in profile.changes]
    keys = grouped((module.name.partition("/")[0], module) for module in loaded_modules(profile))
    found = (_changed(profile.name, name, modules, read, entries) for name, modules in keys.items())
    return [each for each in found if each]


def _changed(
    site: str, name: str, modules: list[LoadedModule], read: list[dt.date], entries: list[Entry]
) -> ChangedModule | None:
    """Return what the newest entry says that names a module, if it is newer than what is known."""
    known = max([*read, *(each.since for each in modules if each.since)], default=None)
    word = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
    last = max((each for each in entries if word.search(each.text)), key=lambda each: each.day, default=None)
    if last is None or (known is not None and last.day <= known):
        return None
    begins, keys = " ".join(last.text.split())[:200], tuple(dict.fromkeys(each.key for each in modules))
    return ChangedModule(site=site, module=name, keys=keys, known=known, changed=last.day, entry=begins)
