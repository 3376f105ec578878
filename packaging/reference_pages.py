"""Prints docs/reference/lint.md or docs/reference/sites.md: ``reference_pages.py PAGE > FILE``."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hpclaunch.lint.finding_report import example
from hpclaunch.lint.lint_rule import Rule
from hpclaunch.lint.lint_script import all_rules
from hpclaunch.lint.shellcheck import PREFIX
from hpclaunch.site.fact_sources import fact_sources, unknown_facts
from hpclaunch.site.load_profile import load_all, load_kinds
from hpclaunch.site.schema import NodeKind, SiteProfile
from hpclaunch.software.site_software import site_software

GOALS = ("torch", "horovod-torch", "horovod-tensorflow", "jax", "deepspeed")
"""The frameworks in the table of the machines."""
HEADINGS = {"production": "In operation", "historic": "Switched off"}
"""Status of a profile -> heading; generic profiles describe no machine."""


def render(template: str, **facts: Any) -> str:
    """Return the page of a template in this folder."""
    environment = Environment(  # noqa: S701 - Markdown, not HTML
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(facts)


def rules_page(rules: Sequence[Rule]) -> str:
    """Return the page of the rules of lint: every rule with what, why, remedy and an example."""
    return render("lint_rules.md.j2", rules=rules, prefix=PREFIX, example=example)


def machines_page(profiles: Mapping[str, SiteProfile], kinds: Mapping[str, NodeKind]) -> str:
    """Return the page of the machines and node kinds: their software, sources, and what is not known."""
    return render(
        "machines.md.j2",
        profiles=profiles,
        kinds=kinds,
        goals=GOALS,
        software=lambda profile: {row.goal: row for row in site_software(profile)},
        headings=HEADINGS,
        fact_sources=fact_sources,
        unknown_facts=unknown_facts,
        # Without anything that Markdown or a table reads as its own.
        plain=lambda text: re.sub(r"([\\|*<\[\]`])", r"\\\1", text),
    )


def shipped_machines() -> str:
    """Return the page of the machines whose profiles are shipped."""
    return machines_page(load_all()[0], {name: kind for name, (kind, _) in load_kinds()[0].items()})


PAGES: dict[str, Callable[[], str]] = {"lint": lambda: rules_page(all_rules()), "sites": shipped_machines}

if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]]())
