"""The wheels that pip installs for each vendor's GPUs: package, index, source."""

from functools import cache

import msgspec

from hpclaunch.package_data import package_table


class Wheels(msgspec.Struct, frozen=True, kw_only=True):
    """What ``pip install`` gets."""

    words: tuple[str, ...]
    """Requirements."""
    index: str | None = None
    """Index to take them from; None: pip's own."""
    versions: dict[str, str] = {}
    source: str


@cache
def wheels_of(goal: str, vendor: str | None) -> Wheels | None:
    """Return the wheels for GPUs of a vendor, or for CPUs; None: no index is known."""
    table = package_table("software/install_recipes.yaml")["wheels"]
    found = table.get(goal, {}).get(vendor or "cpu")
    return None if found is None else msgspec.convert(found, Wheels)
