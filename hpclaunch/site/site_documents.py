"""The JSON documents about sites that commands print with ``--json``; schemas: docs/reference/json."""

from pathlib import Path
from typing import Literal

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.json_document import Document
from hpclaunch.package_data import resource_dir
from hpclaunch.site import detect, fact_sources, load_profile, module_facts, profile_files, schema


class ListedSite(msgspec.Struct, frozen=True, kw_only=True):
    """One profile, or with ``--kinds`` one node kind; of one that cannot be read ``status`` is null."""

    name: str
    file: str
    origin: Literal["user", "centre", "shipped"]
    hides: str | None
    extends: str | None
    part_of: str | None
    node_kind: str | None
    status: str | None
    description: str | None
    error: str | None


class ValidatedSite(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one profile."""

    site: str
    ok: bool
    name: str | None = None
    digest: str | None = None
    errors: tuple[str, ...] = ()


class SourcesDocument(Document, frozen=True, kw_only=True):
    """The age of the sources that the profiles cite."""

    older_than_days: int
    sources: int
    old: tuple[fact_sources.ReadSource, ...]
    not_readable: dict[str, str]
    changed: tuple[module_facts.ChangedModule, ...] = ()


class FactsDocument(Document, frozen=True, kw_only=True):
    """How well machines are known."""

    sites: dict[str, fact_sources.CountedFacts]


class DetectedSite(Document, frozen=True, kw_only=True):
    """Which site this machine is."""

    site: str
    hostname: str
    reason: str
    evidence: tuple[detect.Evidence, ...]
    notes: tuple[str, ...]


def listed_sites(*, kinds: bool = False) -> tuple[ListedSite, ...]:
    """Return what is known about each profile, or about each node kind."""
    if kinds:
        described, wrong = load_profile.load_kinds()
        right = [
            msgspec.structs.replace(
                _listed(name, path, None, None, hidden=None), status="node kind", description=kind.description
            )
            for name, (kind, path) in described.items()
        ]
        return (
            *right,
            *(_listed(name, path, None, error, hidden=None) for name, (error, path) in wrong.items()),
        )
    hidden, (profiles, broken) = load_profile.hidden_sites(), load_profile.load_all()
    return tuple(
        _listed(name, path, profiles.get(name), broken.get(name), hidden=hidden.get(name))
        for name, path in load_profile.site_names().items()
    )


def _listed(
    name: str, path: Path, profile: schema.SiteProfile | None, error: str | None, hidden: Path | None
) -> ListedSite:
    known = ("extends", "part_of", "node_kind", "status", "description")
    own = path.is_relative_to(profile_files.user_sites_folder())
    shipped = path.is_relative_to(resource_dir("site_profiles"))
    return ListedSite(
        name=name,
        file=str(path),
        origin="user" if own else "shipped" if shipped else "centre",
        hides=None if hidden is None else str(hidden),
        error=error,
        **{key: getattr(profile, key, None) for key in known},
    )


def validated_site(site: str) -> ValidatedSite:
    """Return whether the profile or node kind of this name or file is right, and its mistakes."""
    try:
        if kind := load_profile.load_kind(site):
            return ValidatedSite(
                site=site, ok=True, name=kind[0].node_kind, digest=load_profile.profile_digest(kind[0])
            )
        profile = load_profile.load_merged(site).profile
    except BadInputError as error:
        return ValidatedSite(site=site, ok=False, errors=tuple(str(error).splitlines()))
    wrong = (
        () if profile.retired else tuple(f"{site}: {each}" for each in module_facts.without_version(profile))
    )
    return ValidatedSite(
        site=site, ok=not wrong, name=profile.name, digest=load_profile.profile_digest(profile), errors=wrong
    )
