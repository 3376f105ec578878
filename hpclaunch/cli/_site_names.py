"""Completion of the names of sites at the shell's Tab."""

import click


def complete_site(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the sites whose names begin so."""
    from hpclaunch.site.load_profile import site_names

    return [name for name in site_names() if name.startswith(incomplete)]
