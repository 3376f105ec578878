"""The shipped profiles, each read once by a process of the tests."""

from __future__ import annotations

from functools import cache

from hpclaunch.site.load_profile import load_site
from hpclaunch.site.schema import SiteProfile


@cache
def shipped(name: str) -> SiteProfile:
    """The profile of a site; it is frozen."""
    return load_site(name)
