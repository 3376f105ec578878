"""The JSON documents about sites that commands print with ``--json``; schemas: docs/reference/json."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from typing import Literal

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.json_document import Document
from hpclaunch.site.detect import Detection, Evidence
from hpclaunch.site.fact_age import ReadSource
from hpclaunch.site.load_profile import (
    hidden_sites,
    load_all,
    load_merged,
    profile_digest,
    site_names,
    user_sites_folder,
)
from hpclaunch.site.module_facts import ChangedModule, without_version


class ListedSite(msgspec.Struct, frozen=True, kw_only=True):
    """One profile; of one that cannot be read ``extends``, ``status`` and ``description`` are null."""

    name: str
    file: str
    origin: Literal["user", "shipped"]
    hides: str | None
    """The file of the shipped profile of this name."""
    extends: str | None
    status: str | None
    description: str | None
    error: str | None
    """Why the profile cannot be read."""


class ValidatedSite(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one profile."""

    site: str
    """As it was named."""
    ok: bool
    name: str | None = None
    """The profile's name; null where it is wrong."""
    digest: str | None = None
    """Digest of the merged profile; null where it is wrong."""
    errors: tuple[str, ...] = ()


class SourcesDocument(Document, frozen=True, kw_only=True):
    """The age of the sources that the profiles cite."""

    older_than_days: int
    sources: int
    """Number of all sources."""
    old: tuple[ReadSource, ...]
    """Those that were read longer ago."""
    not_readable: dict[str, str]
    """Profile that cannot be read -> why."""
    changed: tuple[ChangedModule, ...] = ()
    """With ``--page``: modules of the profiles that a newer entry of that page names."""


class DetectedSite(Document, frozen=True, kw_only=True):
    """Which site this machine is."""

    site: str
    """``unknown`` where the evidence does not decide."""
    hostname: str
    reason: str
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...]
    """What could not be read, in sentences."""


DOCUMENTS = {
    "sites-list": tuple[ListedSite, ...],
    "sites-validate": tuple[ValidatedSite, ...],
    "sites-check": SourcesDocument,
    "sites-detect": DetectedSite,
}
"""Name of the schema -> its type."""


def listed_sites() -> tuple[ListedSite, ...]:
    """Return what is known about each profile."""
    hidden, (profiles, broken) = hidden_sites(), load_all()
    return tuple(
        ListedSite(
            name=name,
            file=str(path),
            origin="user" if path.parent == user_sites_folder() else "shipped",
            hides=str(hidden[name]) if name in hidden else None,
            extends=getattr(profiles.get(name), "extends", None),
            status=getattr(profiles.get(name), "status", None),
            description=getattr(profiles.get(name), "description", None),
            error=broken.get(name),
        )
        for name, path in site_names().items()
    )


def validated_site(site: str) -> ValidatedSite:
    """Return whether the profile of this name or file is right, and its mistakes."""
    try:
        profile = load_merged(site).profile
    except BadInputError as error:
        return ValidatedSite(site=site, ok=False, errors=tuple(str(error).splitlines()))
    wrong = () if profile.retired else tuple(f"{site}: {each}" for each in without_version(profile))
    return ValidatedSite(
        site=site, ok=not wrong, name=profile.name, digest=profile_digest(profile), errors=wrong
    )


def detected_site(found: Detection, hostname: str) -> DetectedSite:
    """Return a verdict for ``--json``."""
    return DetectedSite(
        site=found.site or "unknown",
        hostname=hostname,
        reason=found.reason,
        evidence=found.evidence,
        notes=found.notes,
    )
