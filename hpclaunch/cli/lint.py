"""``hpclaunch lint``: list what is wrong with a batch script."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._documents import print_document
from hpclaunch.cli._site_names import complete_site
from hpclaunch.errors import EXIT_FAILED, BadInputError

if TYPE_CHECKING:
    from hpclaunch.lint.lint_rule import Finding
    from hpclaunch.site.schema import SiteProfile

_MAX_BYTES = 4 << 20  # Slurm takes no larger script by default (man slurm.conf, max_script_size)

_EPILOG = """\b
Examples:
  hpclaunch lint job.sh
  hpclaunch lint --site lumi-g --fix job.sh
  hpclaunch lint --sarif job.sh > lint.sarif
  hpclaunch lint --rules
"""


@click.command(epilog=_EPILOG)
@click.argument("script", required=False, type=click.Path())
@click.option(
    "--site", shell_complete=complete_site, help="Site profile. Default: from the script, else this machine."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--sarif", "as_sarif", is_flag=True, help="A SARIF 2.1.0 log on stdout, for code review.")
@click.option("--fix", "fixing", is_flag=True, help="Correct what is safe, and show the changes.")
@click.option("--rules", "list_rules", is_flag=True, help="List the rules instead.")
@click.option("--markdown", is_flag=True, help="With --rules: the page of the docs.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List what is wrong with SCRIPT, an sbatch or qsub script; - reads standard input.

    Exit status: 0 without errors and warnings (notes are allowed), 1 with errors or warnings, 3 if the script
    cannot be read.
    """
    if options["list_rules"]:
        _print_rules(options)
        return
    script = _usage(options)
    data = _read(script)
    text = data.decode("utf-8", errors="replace")
    profile = _profile(options["site"], text)
    findings = _lint(script, text, profile)
    if options["fixing"]:
        findings = _fix(script, data, findings, profile)
    _print(options, script, findings)
    ctx.exit(EXIT_FAILED if any(one.severity != "note" for one in findings) else 0)


def _usage(options: dict[str, Any]) -> str:
    """Return the script's name; refuse options that contradict each other, as wrong usage."""
    if options["markdown"]:
        raise click.UsageError("--markdown goes with --rules")
    if options["as_json"] and options["as_sarif"]:
        raise click.UsageError("--json and --sarif: give only one of them")
    if options["script"] is None:
        raise click.UsageError("SCRIPT is missing")
    if options["script"] == "-" and options["fixing"]:
        raise click.UsageError("--fix needs a file to write to, not -")
    return str(options["script"])


def _print_rules(options: dict[str, Any]) -> None:
    from hpclaunch.lint.finding_report import rules_list, rules_page
    from hpclaunch.lint.lint_script import all_rules

    if options["as_json"]:
        print_document(all_rules(), indent=2)
    elif options["markdown"]:
        click.echo(rules_page(all_rules()), nl=False)
    else:
        click.echo(rules_list(all_rules()))


def _read(script: str) -> bytes:
    """Return the script's bytes; raise BadInputError if it cannot be read or is too large."""
    try:
        if script == "-":
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(script).open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInputError(f"{script}: cannot be read: {reason}", "give a batch script") from None
    if len(data) > _MAX_BYTES:
        raise BadInputError(f"{script}: larger than {_MAX_BYTES} bytes", "give a batch script")
    return data


def _profile(site: str | None, text: str) -> SiteProfile | None:
    """Return the site of --site, else that of the script, else that of this machine."""
    from hpclaunch.lint.batch_script import read_script
    from hpclaunch.lint.lint_script import site_of
    from hpclaunch.site.detect import detect_here
    from hpclaunch.site.load_profile import load_all, load_site

    if site is not None:
        return load_site(site)
    script = read_script(text)
    profiles, _ = load_all()
    name = site_of(script, profiles)
    why = "only this site matches the script's directives"
    if name is None:
        here = detect_here()
        name, why = here.site, here.reason
        if name is not None and script.kind not in (None, profiles[name].scheduler.kind):
            name = None
    if name is None:
        click.echo("note: the site is not known, so its limits are not checked", err=True)
        return None
    click.echo(f"note: checked for site {name}: {why}", err=True)
    return profiles[name]


def _lint(script: str, text: str, profile: SiteProfile | None) -> tuple[Finding, ...]:
    """Run lint's rules, and shellcheck if it is installed."""
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.lint.lint_rule import Files
    from hpclaunch.lint.lint_script import find_faults, in_order
    from hpclaunch.lint.shellcheck import find_shellcheck, run_shellcheck

    here = Path.cwd()
    folders = (here,) if script == "-" else (here, (here / script).parent)
    findings = find_faults(text, profile, Files(folders))
    program = find_shellcheck()
    also = run_shellcheck(program, text, LocalHost()) if program is not None else ()
    return in_order((*findings, *also))


def _fix(
    script: str, data: bytes, findings: tuple[Finding, ...], profile: SiteProfile | None
) -> tuple[Finding, ...]:
    """Write the corrected script, whole or not at all; return the findings that are left."""
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.lint.finding_report import changes
    from hpclaunch.lint.lint_script import fix

    old = data.decode("utf-8", errors="replace")
    new, applied = fix(old, findings)
    if not applied:
        click.echo("note: --fix has nothing to correct", err=True)
        return findings
    if old.encode() != data:
        raise BadInputError(f"{script}: not UTF-8, so it was not changed", "save it as UTF-8")
    target = Path(script).resolve()
    LocalHost().write_file(str(target), new.encode(), mode=target.stat().st_mode & 0o7777)
    click.echo(changes(script, old, new), err=True, nl=False)
    click.echo(f"corrected: {', '.join(one.rule for one in applied)}", err=True)
    return _lint(script, new, profile)


def _print(options: dict[str, Any], script: str, findings: tuple[Finding, ...]) -> None:
    from hpclaunch.lint.finding_report import document, report, sarif
    from hpclaunch.lint.lint_script import all_rules

    if options["as_json"]:
        print_document(document(findings), indent=2)
    elif options["as_sarif"]:
        click.echo(json.dumps(sarif(script, findings, all_rules()), indent=2))
    else:
        click.echo(report(script, findings))
