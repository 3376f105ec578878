"""Rules about the ranks' environment: exported variables, rendezvous, network, MPI plugin."""

import re
import shlex
from collections.abc import Iterator
from math import inf

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.launch_lines import Launch, Option
from hpclaunch.lint.lint_rule import Context, Edit, Severity, Violation, rule
from hpclaunch.lint.program_words import line_of, program_words, torch_run
from hpclaunch.lint.rules.resource_rules import has_several_jobs
from hpclaunch.shell.arithmetic import MAX_VALUE, Bounds, bounds
from hpclaunch.shell.shell_syntax import Command, Part, variable_name

_MOST_PORT = 65535


@rule("export-comma-value")
def export_comma_value(context: Context) -> Iterator[Violation]:
    script = context.script
    for launch in script.launches:
        option = launch.srun_option("export")
        torn = _torn_values(script, script.value(option).text or "")
        if option is not None and torn:
            name, value = next(iter(torn.items()))
            edits = _export_fix(script, launch.command, option, torn)
            yield Violation(option.line, _torn_message(name, value), edits=edits)
    for found in script.directives:
        given = (found.value or "") if found.role == "export" and found.active else ""
        for name, value in _torn_values(script, given).items():
            remedy = f"write export {name}={value} in the script"
            yield Violation(found.line, _torn_message(name, value), remedy)


@rule("export-without-all")
def export_without_all(context: Context) -> Iterator[Violation]:
    script, of_job = context.script, _export_of_job(context)
    severities: tuple[Severity, ...] = ("error", "warning", "note")
    for launch in (one for one in script.launches if one.launcher == "srun" and one.program):
        option, words = launch.option("export"), script.variables.fields(launch.program) or ["?"]
        text = script.value(option).in_words if option else of_job
        found = bool(re.search(r"[/$?]", words[0]) or launch.option("container-image", "container"))
        if _drops_path(text, found) and not re.match(TABLE["login_shell"], " ".join(words)):
            message = f"--export={text[:40]}: {words[0]} starts without the script's PATH and modules"
            yield Violation(launch.line, message, severity=severities[found + (option is None)])
            return


def _export_of_job(context: Context) -> str:
    """Return the value of the job's --export; empty where the script changes it for its steps, too."""
    given = context.directive("export")
    again = re.search(r"SLURM_EXPORT_ENV|\bmodule load \S*slurm", context.script.text)  # LRZ's slurm_setup
    return given.value or "" if given and not again else ""


def _drops_path(text: str, found: bool) -> bool:
    """Tell whether --export surely drops what a program needs; a variable may hold ALL."""
    needed = {"ALL", "PATH", "", *(["LD_LIBRARY_PATH"] if found else [])}
    names = {item.strip("\"' ").partition("=")[0].upper() for item in text.split(",")}
    return bool(text) and names.isdisjoint(needed) and not re.search(r"(^|,)[\"']?[$?]", text)


def _torn_message(name: str, value: str) -> str:
    return f"--export: the comma in {name}={value} ends the value at {value.split(',')[0]!r}"


def _torn_values(script: Script, text: str) -> dict[str, str]:
    """Return the variables of an --export whose value is cut off at a comma, outside of quotes."""
    items = _export_items(script, text).items()
    return {name: value for name, value in items if "," in re.sub(r"'[^']*'|\"[^\"]*\"", "", value)}


def _export_items(script: Script, text: str) -> dict[str, str]:
    """Read ``ALL,A=1,B=x,y`` as meant: items that are not a variable's name belong to the value before."""
    items: dict[str, str] = {}
    last = ""
    for item in re.findall(r"(?:'[^']*'|\"[^\"]*\"|[^,])+", text):
        name, equals, value = item.partition("=")
        if equals and variable_name(name):
            items[name], last = value, name
        elif last and not (variable_name(item) and (item.isupper() or script.variables.is_set(item))):
            items[last] += f",{item}"
        else:
            last = ""
    return items


def _export_fix(script: Script, command: Command, option: Option, torn: dict[str, str]) -> tuple[Edit, ...]:
    """Turn the torn values into export lines if srun is alone on its line."""
    word = option.value
    if word is None or word.text is None or re.search(r"['\"\\]", word.raw):
        return ()
    text = word.text[option.prefix :]
    if text.split(",")[0] != "ALL" or not _is_own_line(script, command):
        return ()
    begins = script.text.rfind("\n", 0, command.start) + 1
    indent = script.text[begins : command.start]
    lines = "".join(f"{indent}export {name}={shlex.quote(value)}\n" for name, value in torn.items())
    items = _export_items(script, text)
    others = [f"{name}={value}" for name, value in items.items() if name not in torn]
    whole = word.raw[: word.raw.index("ALL")] + ",".join(["ALL", *others])
    return (Edit(begins, begins, lines), Edit(word.start, word.end, whole))


def _is_own_line(script: Script, command: Command) -> bool:
    """Tell whether a command is alone on its line and inside no other command."""
    before = script.text[script.text.rfind("\n", 0, command.start) + 1 : command.start]
    first = not before.strip() and command.before in ("", "\n")
    return first and not (command.assignments or command.depth or command.block)


@rule("master-port-too-high")
def master_port_too_high(context: Context) -> Iterator[Violation]:
    for line, name, low, high in _ports(context.script):
        if _MOST_PORT < high < MAX_VALUE and name == "MASTER_PORT":
            message = f"MASTER_PORT is up to {high}, the highest port is {_MOST_PORT}"
            yield Violation(line, message, _port_of_job(context), "error" if low > _MOST_PORT else None)


@rule("master-port-fixed")
def master_port_fixed(context: Context) -> Iterator[Violation]:
    alone = context.owns_node or not 0 < (context.requested.gpus_of_node or 0) < TABLE["fewest_gpus"]
    usual = TABLE["default_ports"] if not has_several_jobs(context.script) else range(_MOST_PORT)
    seen: set[int] = set()
    for line, name, port, high in _ports(context.script):
        if port == high and port not in seen:
            seen.add(port)
            message = f"{name} is always {port}, for every job"
            severity: Severity | None = "note" if alone or port not in usual else None
            yield Violation(line, message, _port_of_job(context), severity)


def _port_of_job(context: Context) -> str:
    """Return the remedy for a port: one that depends on the job."""
    reader = context.script.reader
    number = TABLE["job_numbers"].get(reader.sentinel, "$$") if reader else "SLURM_JOB_ID"
    return f"derive it from the job: export MASTER_PORT=$((10000 + {number} % 10000))"


def _ports(script: Script) -> Iterator[tuple[int, str, int, int]]:
    """Yield line and name of each port that a variable or an option gives, its lowest and highest value."""
    for one in script.variables.all_assignments("MASTER_PORT"):
        if one.value is None:
            continue
        text = script.variables.expand(one.value).text
        number = text if text and text.strip().isdigit() else ""
        span = _arithmetic(one.value.parts) if text is None else bounds(number)
        if span is not None:
            yield one.line, "MASTER_PORT", *span
    for launch in script.launches:
        for name, port in _ports_of_launch(script, launch):
            yield _line_of_port(script, launch, port), f"--{name}", int(port), int(port)


def _arithmetic(parts: tuple[Part, ...]) -> Bounds | None:
    """Return the bounds of ``$((10000 + SLURM_JOB_ID % 10000))``; a variable may be any number from 0 up."""
    if len(parts) != 1 or parts[0].kind != "arithmetic" or len(parts[0].text) > 200:
        return None
    inside = re.sub(r"\$\{[^}]*\}|\$[\w$]+|\b[A-Za-z_]\w*", " x ", parts[0].text[3:-2])
    return bounds(inside)


@rule("master-addr-unused")
def master_addr_unused(context: Context) -> Iterator[Violation]:
    variables = context.script.variables
    made = variables.assignments.get("MASTER_ADDR", [])
    read = "MASTER_ADDR" in variables.exported | variables.used
    if made and not read and context.script.on_from("a", "allexport") == inf:
        ranks = any(one.by_launcher and one.launcher != "torchrun" for one in context.script.launches)
        counted = context.requested.tasks or context.requested.tasks_per_node
        alone = not ranks or (counted and context.requested.all_tasks == 1)
        message = "MASTER_ADDR is set but unused: neither exported nor read"
        yield Violation(made[-1].line, message, severity="note" if alone else None)


def _ports_of_launch(script: Script, launch: Launch) -> Iterator[tuple[str, str]]:
    """Yield option and number of each port that torchrun, deepspeed, accelerate or a program gets."""
    run = torch_run(script, launch)
    options = run.options if run else {}
    for name, form in TABLE["port_options"].items():
        if (match := re.fullmatch(form, options.get(name, ""))) and int(match[1]):
            yield name, match[1]
    if options.get("rdzv-backend") == "c10d" and re.search(TABLE["without_port"], script.text):
        yield "rdzv-endpoint", "29400"  # DEFAULT_PORT of c10d_rendezvous_backend.py (1.9 to 2.9)
    if run is None or run.is_open:
        text = " ".join(program_words(script, launch))
        yield from re.findall(r"--(master[-_]port|main[-_]process[-_]port)[= ](\d{2,5})(?!\d)", text)


def _line_of_port(script: Script, launch: Launch, port: str) -> int:
    """Return the line that has the number of a port."""
    made = [one for name in script.variables.assignments for one in script.variables.assignments[name]]
    by_name = [one.line for one in made if one.value is not None and one.value.visible == port]
    inside = script.text[max(launch.command.start, 0) : max(launch.command.end, 0)]
    return by_name[0] if by_name and port not in inside else line_of(script, launch, port)
