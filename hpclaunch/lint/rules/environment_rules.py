"""Rules on what the ranks find around them: exported variables, rendezvous, network, MPI plugin."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.lint.lint_rule import Context, Edit, Found, Severity, rule
from hpclaunch.lint.shell_syntax import Assignment, Part, variable_name
from hpclaunch.site.queue_limits import cite

_EPHEMERAL = (32768, 60999)
"""Ports that Linux hands out by itself (ip_local_port_range, man 7 ip)."""
_MAX_VALUE = 1 << 40


@rule(
    "export-comma-value",
    "error",
    what="A value with commas in srun's `--export`.",
    why="The comma ends the variable: of `NCCL_SOCKET_IFNAME=hsn0,hsn1` the ranks get `hsn0`, and `hsn1` is"
    " taken"
    " for the name of a variable (man srun, --export).",
    remedy="Export the variable before srun and say `--export=ALL`, or nothing.",
    bad="srun --export=ALL,NCCL_SOCKET_IFNAME=hsn0,hsn1 ./app",
    good="export NCCL_SOCKET_IFNAME=hsn0,hsn1\nsrun --export=ALL ./app",
    fixable=True,
)
def export_comma_value(context: Context) -> Iterator[Found]:
    """Find items of --export that go on with the value before them."""
    script = context.script
    for launch in script.launches:
        text = script.value(launch.option("export")).text if launch.launcher == "srun" else None
        torn = {name: value for name, value in _export_items(script, text or "").items() if _is_torn(value)}
        if torn:
            option = launch.option("export")
            assert option is not None  # noqa: S101
            name, value = next(iter(torn.items()))
            message = f"--export: the comma in {name}={value} ends the value at {value.split(',')[0]!r}"
            yield Found(option.line, message, None, None, _export_fix(script, launch, torn))
    for found in script.directives:
        if found.role == "export" and found.active:
            for name, value in _export_items(script, found.value or "").items():
                if _is_torn(value):
                    message = (
                        f"--export: the comma in {name}={value} ends the value at {value.split(',')[0]!r}"
                    )
                    yield Found(found.line, message, f"write export {name}={value} in the script")


def _export_items(script: Script, text: str) -> dict[str, str]:
    """Read ``ALL,A=1,B=x,y`` as meant: items that are no variable's name belong to the value before."""
    items: dict[str, str] = {}
    last = ""
    for item in _outside_quotes(text):
        name, equals, value = item.partition("=")
        if equals and variable_name(name):
            items[name], last = value, name
        elif last and not (variable_name(item) and (item.isupper() or script.variables.is_set(item))):
            items[last] += f",{item}"
        else:
            last = ""
    return items


def _is_torn(value: str) -> bool:
    """Tell whether a comma stands outside of the quotes that srun would heed."""
    return "," in re.sub(r"'[^']*'|\"[^\"]*\"", "", value)


def _outside_quotes(text: str) -> list[str]:
    """Split at the commas outside of quotes, which srun keeps together."""
    return [found for found in re.findall(r"((?:'[^']*'|\"[^\"]*\"|[^,'\"]|['\"])+)", text) if found]


def _export_fix(script: Script, launch: Launch, torn: dict[str, str]) -> tuple[Edit, ...]:
    """Turn the torn values into export lines where srun stands on a line of its own."""
    option = launch.option("export")
    command = launch.command
    if option is None or option.value is None or option.value.text is None or command.depth or command.block:
        return ()
    items = option.value.text[option.prefix :].split(",")
    begins = script.text.rfind("\n", 0, command.start) + 1
    own_line = not script.text[begins : command.start].strip() and command.before in ("", "\n")
    if items[0] != "ALL" or not own_line or command.assignments:
        return ()
    kept = [
        f"{name}={value}"
        for name, value in _export_items(script, ",".join(items)).items()
        if name not in torn
    ]
    if len(kept) + len(torn) + 1 != 1 + len(_export_items(script, ",".join(items))):
        return ()
    indent = script.text[begins : command.start]
    lines = "".join(f"{indent}export {name}={shlex.quote(value)}\n" for name, value in torn.items())
    option_text = option.value.raw[: option.value.raw.index("ALL")] if "ALL" in option.value.raw else None
    if option_text is None or any(character in option.value.raw for character in "'\"\\"):
        return ()
    whole = f"{option_text}{','.join(['ALL', *kept])}"
    return (Edit(begins, begins, lines), Edit(option.value.start, option.value.end, whole))


@rule(
    "mpi-plugin-not-offered",
    "warning",
    what="srun's `--mpi` names a plugin that the site does not document.",
    why="Where it is not built srun refuses; where it does not fit the MPI every rank starts as rank 0 of 1,"
    " without an error.",
    remedy="Leave --mpi out for the site's default, or ask `srun --mpi=list`.",
    bad="# LUMI-G documents pmi2 for containers, not pmix\nsrun --mpi=pmix ./app",
    good="srun ./app",
)
def mpi_plugin_not_offered(context: Context) -> Iterator[Found]:
    """Hold --mpi against the profile."""
    profile = context.profile
    if profile is None or profile.mpi.plugin_open:
        return
    offered = {*profile.mpi.alternatives, *([profile.mpi.plugin] if profile.mpi.plugin else []), "none"}
    if "cray" in (profile.mpi.implementation or "").lower():
        offered.add("cray_shasta")
    if offered == {"none"} and profile.mpi.implementation is None:
        return
    for launch in context.script.launches:
        by_srun = launch.launcher == "srun" and launch.launcher == profile.scheduler.launcher
        option = launch.option("mpi") if by_srun else None
        value = context.script.value(option).text
        if option and value and re.sub(r"_v\d+$", "", value) not in {*offered, "list"}:
            known = ", ".join(sorted(offered - {"none"})) or "its default"
            source = cite(profile, profile.mpi.source)
            yield Found(
                option.line,
                f"--mpi={value} is not documented by {profile.name}, which has {known} ({source})",
            )


@rule(
    "master-port-ephemeral",
    "warning",
    what="MASTER_PORT lies in the range that Linux hands out by itself (32768 to 60999).",
    why="Any outgoing connection of any process may hold the port just then, and the rendezvous fails now and"
    " then (man 7 ip, ip_local_port_range).",
    remedy="Take one below: `export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))`.",
    bad="export MASTER_PORT=45678",
    good="export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))",
)
def master_port_ephemeral(context: Context) -> Iterator[Found]:
    """Find ports that reach into the ephemeral range."""
    for one, low, high in _ports(context.script):
        if high >= _EPHEMERAL[0] and low <= _EPHEMERAL[1]:
            ports = str(low) if low == high else f"{low} to {high}"
            yield Found(one.line, f"MASTER_PORT {ports} is in the ephemeral range of Linux, 32768 to 60999")


@rule(
    "master-port-fixed",
    "warning",
    what="MASTER_PORT is the same for every job.",
    why="Two jobs on one node take each other's port. On whole nodes it is a note: only a job's own"
    " leftovers can"
    " hold the port.",
    remedy="Derive it from the job: `export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))`.",
    bad="export MASTER_PORT=29500",
    good="export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))",
)
def master_port_fixed(context: Context) -> Iterator[Found]:
    """Find ports that are one number."""
    mild: Severity | None = "note" if context.owns_node else None
    for one, low, high in _ports(context.script):
        if low == high and not _EPHEMERAL[0] <= low <= _EPHEMERAL[1]:
            yield Found(one.line, f"MASTER_PORT is always {low}, for every job", severity=mild)


def _ports(script: Script) -> Iterator[tuple[Assignment, int, int]]:
    """Yield each assignment of MASTER_PORT with the least and the greatest port it can be."""
    for one in script.variables.everywhere("MASTER_PORT"):
        if one.value is None:
            continue
        text = script.variables.expand(one.value).text
        span = _span(text) if text is not None else _arithmetic(one.value.parts)
        if span is not None:
            yield one, *span


def _span(text: str) -> tuple[int, int] | None:
    text = text.strip()
    return (int(text), int(text)) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _arithmetic(parts: tuple[Part, ...]) -> tuple[int, int] | None:
    """Return the bounds of ``$((10000 + SLURM_JOB_ID % 10000))``; a variable is any number from 0 on."""
    if len(parts) != 1 or parts[0].kind != "arithmetic" or len(parts[0].text) > 200:
        return None
    inside = re.sub(r"\$\{[^}]*\}|\$[\w$]+|\b[A-Za-z_]\w*", " x ", parts[0].text[3:-2])
    try:
        bounds = _bounds(ast.parse(inside.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return bounds if bounds is not None and bounds[1] <= 65535 else None


def _bounds(node: ast.expr) -> tuple[int, int] | None:
    """Return the least and greatest value of an expression over numbers from 0 on."""
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value < _MAX_VALUE:
        return node.value, node.value
    if isinstance(node, ast.Name):
        return 0, _MAX_VALUE
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _bounds(node.left), _bounds(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Add):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(node.op, ast.Mod) and right[0] == right[1] > 0:
        return (left[0] % right[0],) * 2 if left[0] == left[1] else (0, right[0] - 1)
    if isinstance(node.op, ast.Sub) and right[0] == right[1]:
        return left[0] - right[0], left[1] - right[0]
    return None


@rule(
    "master-addr-unused",
    "warning",
    what="MASTER_ADDR is set, but neither exported nor used.",
    why="No rank sees it: torch.distributed fails, or looks for rank 0 on its own node.",
    remedy="Write `export MASTER_ADDR`, or take the line out where nothing needs it (Horovod, MPI).",
    bad='MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)\nsrun python train.py',
    good='MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)\nexport MASTER_ADDR\n'
    "srun python train.py",
)
def master_addr_unused(context: Context) -> Iterator[Found]:
    """Find a rendezvous address that stays in the script's own shell."""
    variables = context.script.variables
    made = variables.assignments.get("MASTER_ADDR", [])
    if (
        made
        and "MASTER_ADDR" not in variables.exported | variables.used
        and not _all_exported(context.script)
    ):
        yield Found(made[-1].line, "MASTER_ADDR is set but unused: neither exported nor read")


def _all_exported(script: Script) -> bool:
    """Tell whether ``set -a`` exports everything."""
    words = [word.visible for c in script.commands if c.name == "set" for word in c.words[1:]]
    return "allexport" in words or any(re.fullmatch(r"-[a-zA-Z]*a[a-zA-Z]*", word) for word in words)


@rule(
    "socket-ifname-unknown",
    "warning",
    what="NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names an interface that the site does not have.",
    why="NCCL finds no interface and stops, or the ranks meet over another network.",
    remedy="Name the site's high-speed interfaces.",
    bad="# LUMI-G has hsn0 to hsn3\nexport NCCL_SOCKET_IFNAME=ib0",
    good="export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3",
)
def socket_ifname_unknown(context: Context) -> Iterator[Found]:
    """Hold the interfaces against the site's; a name is a beginning, with = in front the whole."""
    node = context.profile.node if context.profile else None
    nics = [nic.name for nic in node.nics] if node else []
    if not nics or context.profile is None:
        return
    for variable in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        for line, value in _values(context.script, variable):
            exact, names = value.startswith("="), value.removeprefix("=").split(",")
            known = [n for n in names if any(nic == n if exact else nic.startswith(n) for nic in nics)]
            if not value.startswith("^") and (unknown := [n for n in names if n and n not in known]):
                message = (
                    f"{variable} names {', '.join(unknown)}; {context.profile.name} has {', '.join(nics)}"
                )
                yield Found(line, message)


def _values(script: Script, variable: str) -> Iterator[tuple[int, str]]:
    """Yield each value that the script gives a variable, in assignments and in --export."""
    for one in script.variables.everywhere(variable):
        text = script.variables.expand(one.value).text if one.value else None
        if text:
            yield one.line, text.strip()
    for launch in script.launches:
        option = launch.option("export") if launch.launcher == "srun" else None
        value = _export_items(script, script.value(option).text or "").get(variable)
        if option and value:
            yield option.line, value.strip("'\"")
