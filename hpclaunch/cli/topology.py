"""``hpclaunch topology``: show a node, and which CPUs, GPUs and NIC each of its ranks gets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._options import check_picture_name, options, wants_document
from hpclaunch.cli._terminal import echo_text, print_document, terminal_width, write_picture
from hpclaunch.errors import EXIT_FAILED, BadInputError, note_text
from hpclaunch.topology.source_kinds import SOURCE_KINDS, SYSFS

if TYPE_CHECKING:
    from hpclaunch.binding.node_binding import BindingRequest, NodeBinding
    from hpclaunch.topology.node_topology import NodeTopology

SOURCES = tuple(SOURCE_KINDS)


def _source_options(function: Callable[..., None]) -> Callable[..., None]:
    for name, kind in reversed(SOURCE_KINDS.items()):
        folder = name == SYSFS
        add = click.option(
            f"--{name.replace('_', '-')}",
            type=click.Path(path_type=Path),
            multiple=not folder,
            metavar="DIR" if folder else None,
            help=kind.help,
        )
        function = add(function)
    return function


@click.command()
@_source_options
@options("topology")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Show a node and the binding of its ranks: this machine, captured files or a site profile."""
    _refuse_two_inputs(options)
    _refuse_two_outputs(options)
    check_picture_name(options["picture"])
    if options["save_to"] is not None:
        from hpclaunch.topology.capture import save_node

        _echo_notes(save_node(options["save_to"]), err=True)
        click.echo(f"saved in {options['save_to']}", err=True)
    topology = _topology(options)
    request = _request(options, topology)
    if _is_check(options):
        ctx.exit(0 if _check(options, topology, request) else EXIT_FAILED)
    binding = _bind(options, topology, request)
    if options["picture"] is not None:
        _picture(options, topology, binding)
    _print(options, topology, binding)


def _refuse_two_inputs(options: Mapping[str, Any]) -> None:
    files = [name for name in SOURCES if options[name]]
    if options["folder"] is not None and files:
        raise click.UsageError(f"--from and --{files[0].replace('_', '-')}: give the folder or the files")
    if options["save_to"] is not None and (files or options["folder"] is not None or options["site"]):
        raise click.UsageError("--save describes this node: omit files, --from and --site")


def _refuse_two_outputs(options: Mapping[str, Any]) -> None:
    if options["check_mask"] is not None and options["check_map"] is not None:
        raise click.UsageError("--check-mask and --check-map: give one of them")
    if wants_document() and options["form"] not in (None, "json"):
        raise click.UsageError(f"--json and --format {options['form']}: give one of them")
    if _is_check(options) and options["form"] not in (None, "table", "json"):
        raise click.UsageError(note_text("topology: form of a check", form=options["form"]))


def _form(options: Mapping[str, Any]) -> str:
    return "json" if wants_document() else options["form"] or "table"


def _is_check(options: Mapping[str, Any]) -> bool:
    return options["check_mask"] is not None or options["check_map"] is not None


def _topology(options: Mapping[str, Any]) -> NodeTopology:
    from hpclaunch.binding.reserved_cores import reserve
    from hpclaunch.topology.sources import apply_site, read_files, read_folder, read_live

    files = {name: options[name] for name in SOURCES if options[name]}
    if files:
        topology = read_files(files)
    elif options["folder"] is not None:
        topology = read_folder(options["folder"])
    elif (site_node := _site_node(options["site"])) is not None:
        topology = site_node
    else:
        topology = read_live()
    if (files or options["folder"] is not None) and (site_node := _site_node(options["site"])) is not None:
        topology = apply_site(topology, site_node)
    return reserve(topology, options["reserve"]) if options["reserve"] is not None else topology


def _site_node(site: str | None) -> NodeTopology | None:
    """Return the profile's node; None without a profile, or for this machine. Else raises BadInputError."""
    if site is None:
        return None
    from hpclaunch.site.load_profile import load_site
    from hpclaunch.site.profile_node import site_topology
    from hpclaunch.site.site_scheduler import site_scheduler

    profile = load_site(site)
    node = site_topology(profile)
    if node is None and not site_scheduler(profile).starts_at_once:
        raise BadInputError.case("topology: no node", profile=profile)
    return node


def _request(options: Mapping[str, Any], topology: NodeTopology) -> BindingRequest:
    from hpclaunch.binding.node_binding import BindingRequest

    usable = topology.usable
    nodes_with_cores = {core.numa for core in topology.cores if usable.intersection(core.cpus)}
    tasks = options["tasks_per_node"]
    if tasks is None:
        tasks = len(topology.gpus) or len(nodes_with_cores) or 1
    more = {name: options[name] for name in BindingRequest.__struct_fields__}
    return BindingRequest(**{**more, "tasks_per_node": tasks})


def _bind(options: Mapping[str, Any], topology: NodeTopology, request: BindingRequest) -> NodeBinding:
    """Compute the binding; where none was requested explicitly and none exists, show the node without one."""
    from hpclaunch.binding.compute import bind, bind_gpus_only
    from hpclaunch.binding.node_binding import NodeBinding

    shows_node = options["form"] in (None, "table", "json")
    if shows_node and topology.gpus and not topology.cores:
        return bind_gpus_only(topology, request)
    try:
        return bind(topology, request)
    except BadInputError as error:
        counts = ("tasks_per_node", "cpus_per_task", "gpus_per_task", "reserve")
        asked = any(options[name] is not None for name in counts) or options["threads_per_core"] != 1
        if asked or not shows_node:  # then the node alone does not answer
            raise
        return NodeBinding(ranks=(), notes=(f"no binding: {error.message}",))


def _check(options: Mapping[str, Any], topology: NodeTopology, request: BindingRequest) -> bool:
    """Check the hand-written list, print the result, and tell whether the list is right."""
    from hpclaunch.binding import judge_masks
    from hpclaunch.binding.node_binding import NodeBinding

    kind: judge_masks.Kind = "mask" if options["check_mask"] is not None else "map"
    text = options["check_mask"] if kind == "mask" else options["check_map"]
    tasks = options["tasks_per_node"]
    judgement = judge_masks.judge(topology, kind, text, tasks=tasks, order=request.order)
    if options["picture"] is not None:
        _picture(options, topology, NodeBinding(ranks=judgement.ranks))
    if _form(options) == "json":
        print_document(judge_masks.document(judgement), indent=2)
    else:
        echo_text(judge_masks.report(judgement, terminal_width()))
    _echo_notes(topology.notes, err=True)
    return judgement.right


def _picture(options: Mapping[str, Any], topology: NodeTopology, binding: NodeBinding) -> None:
    from hpclaunch.binding.picture import svg

    # Where the node's description comes from, for the title.
    here = "" if any(options[name] for name in SOURCES) else "this machine"
    name = str(options["site"] or options["folder"] or here)
    write_picture(options["picture"], svg(topology, binding, name))


def _print(options: Mapping[str, Any], topology: NodeTopology, binding: NodeBinding) -> None:
    from hpclaunch.binding import dialects
    from hpclaunch.binding.picture import draw

    form = _form(options)
    notes = (*topology.notes, *binding.notes)
    if form == "json":
        print_document(dialects.document(topology, binding), indent=2)
        return
    if form != "table":
        click.echo(dialects.FORMATS[form](topology, binding))
        _echo_notes(notes, err=True)
        return
    if sys.stdout.isatty() or not binding.ranks:
        echo_text(draw(topology, binding, terminal_width()) + ("\n" if binding.ranks else ""))
    if binding.ranks:
        click.echo(dialects.table(binding, terminal_width()))
    _echo_notes(notes, err=False)


def _echo_notes(notes: tuple[str, ...], *, err: bool) -> None:
    for note in notes:
        echo_text(f"note: {note}", err=err)
