"""A site's software for each framework, as its profile knows it: for people and JSON. Pure."""

import datetime as dt
from collections.abc import Mapping
from typing import Literal

import msgspec

from hpclaunch.framework_table import GOALS
from hpclaunch.json_document import Document, document_of
from hpclaunch.site.schema import Offer, SiteProfile

Way = Literal["in the setup", "taken by submit", "to install", "none", "unknown"]


class SiteSoftware(msgspec.Struct, frozen=True, kw_only=True):
    """A site's software for one framework."""

    goal: str
    way: Way
    holds: str = ""
    route: str | None = None
    since: dt.date | None = None
    page: str | None = None
    checked: dt.date | None = None
    note: str | None = None

    @property
    def lines(self) -> list[str]:
        """The description, for reading."""
        about = ", ".join(filter(None, (self.holds or self.route, self.page)))
        return [
            f"  {self.goal}: {self.way}{': ' * bool(about)}{about}",
            *[f"    {self.note}"] * bool(self.note),
        ]


class SoftwareDocument(Document, frozen=True, kw_only=True):
    """The sites' software for each framework."""

    sites: dict[str, tuple[SiteSoftware, ...]]


def live(profiles: Mapping[str, SiteProfile]) -> dict[str, SiteProfile]:
    """Return the profiles of machines that are in operation."""
    return {name: each for name, each in profiles.items() if each.status == "production"}


def site_software(profile: SiteProfile) -> tuple[SiteSoftware, ...]:
    """Return a row for each framework that can be planned."""
    return tuple(_row(profile, goal) for goal in GOALS)


def _row(profile: SiteProfile, goal: str) -> SiteSoftware:
    offer, lack = profile.software.offers.get(goal), profile.software.lacks.get(goal)
    stated = offer or lack
    source = profile.sources.get(stated.source) if stated and stated.source else None
    page, checked = (source.url, source.checked) if source else (None, None)
    if offer is not None:
        held = ", ".join(f"{name} {version}" for name, version in offer.versions.items())
        words = {"goal": goal, "way": _way(offer), "holds": held}
        return document_of(SiteSoftware, offer, page=page, checked=checked, **words)
    from hpclaunch.software.install_plan import plan_install  # a job that has its software needs no plan

    plan = plan_install(profile, goal)
    if plan.chosen:
        return SiteSoftware(goal=goal, way="to install", route=plan.chosen, note=plan.route().why)
    if lack is None:
        return SiteSoftware(goal=goal, way="unknown")
    return SiteSoftware(goal=goal, way="none", page=page, checked=checked, note=lack.why)


def _way(offer: Offer) -> Way:
    if offer.needs_install:
        return "to install"
    return "in the setup" if offer.in_setup else "taken by submit"
