"""``hpclaunch predict``: step time, memory and limits of a training that was not run."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpclaunch.cli._options import options, refuse_mixtures
from hpclaunch.cli._terminal import show
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.package_data import resource_dir

if TYPE_CHECKING:
    from hpclaunch.scaling.machine_speed import Machine
    from hpclaunch.scaling.measured_sizes import MeasuredSize
    from hpclaunch.scaling.memory_need import MemoryOptions
    from hpclaunch.scaling.model_table import Model
    from hpclaunch.scaling.prediction import PredictRequest


def _counts(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...]:
    """Return the numbers of ``8,16,...,1024``: three dots repeat the last factor."""
    if text is None:
        return ()
    found: list[int] = []
    words = [word.strip() for word in text.split(",")]
    for number, word in enumerate(words):
        if word != "...":
            found.append(_count(word))
            continue
        one, two = found[-2:] if len(found) > 1 else (1, 1)
        if two <= one or two % one or number + 1 >= len(words):
            raise click.BadParameter(note_text("predict: sizes", text=text))
        factor, end = two // one, _count(words[number + 1])
        while found[-1] * factor < end:
            found.append(found[-1] * factor)
    return tuple(dict.fromkeys(found))


def _count(word: str) -> int:
    if not word.isdecimal() or not 1 <= len(word) <= 7 or int(word) < 1:
        raise click.BadParameter(f"{word!r} is not a number of GPUs")
    return int(word)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@options("predict", gpus=_counts)
def command(
    site: str | None, model: str | None, batch: int | None, gpus: tuple[int, ...], **more: Any
) -> None:
    """Predict step time, memory and limits on a site, for each way to divide a training."""
    if more["from_torch"] is not None:
        click.echo(_traced(more["from_torch"], more), nl=False)
        return
    if site is None or model is None or batch is None or not gpus:
        needed = {"--site": site, "--model": model, "--batch-per-worker": batch, "--gpus": gpus or None}
        missing = [name for name, value in needed.items() if value is None]
        raise click.UsageError(f"Missing option {missing[0]!r}.")

    from hpclaunch.scaling.prediction import predict_all
    from hpclaunch.scaling.prediction_report import as_text

    refuse_mixtures("predict", more)
    request = _request(site, model, batch, gpus, more)
    prediction = predict_all(request)
    if more["simulate"]:
        from hpclaunch.cli._network_simulation import with_simulation

        prediction = with_simulation(prediction, request, site, more)
    show(prediction, as_text)


def does_not_fit(words: Sequence[str], site: str, gpus: int) -> str | None:
    """Return why a network does not fit the memory of a site's GPUs; None: it fits, or the memory is unknown.

    ``words``: its name and options of this command, such as ``zero=3``; a batch of 1 is the least. Raises
    BadInputError.
    """
    from hpclaunch.scaling.prediction import predict_all

    name, *given = words
    stated = {word.partition("=")[0] for word in given}
    strategy = "3d" if stated & {"tensor", "pipeline"} else "data"
    # A step's time is of no interest.
    usual = {"batch-per-worker": "1", "strategy": strategy, "tflops": "1", "memory-gb-s": "1"}
    least = [f"{key}={value}" for key, value in usual.items() if key not in stated]
    line = [f"--{word}" for word in (f"site={site}", f"model={name}", f"gpus={gpus}", *given, *least)]
    try:
        more = command.make_context("predict", line).params
    except click.UsageError as error:
        raise BadInputError(f"model: {','.join(words)}: {error.format_message()}") from None
    request = _request(site, name, more.pop("batch"), more.pop("gpus"), more)
    found = predict_all(request)
    if found.impossible:
        return f"{name} on {gpus} GPUs: {found.impossible[0].why}"
    point = found.points[0]
    if point.fits is not False:
        return None
    remedy = " or ".join(point.remedies) or "more GPUs per worker"
    room = f"they have {request.machine.room_gib:.0f} GiB"
    return f"{name} needs {point.memory_gib:.1f} GiB on each GPU, {room}; it would fit with: {remedy}"


def _request(
    site: str, model: str, batch: int, gpus: tuple[int, ...], more: dict[str, Any]
) -> PredictRequest:
    from hpclaunch.scaling.machine_speed import SpeedOptions, machine_of, with_step_deviation
    from hpclaunch.scaling.prediction import PredictRequest
    from hpclaunch.scaling.strategy_costs import STRATEGIES
    from hpclaunch.site.load_profile import load_site
    from hpclaunch.site.site_scheduler import site_scheduler

    profile, table = load_site(site), model_named(model, more["tokens"])
    here = len(os.sched_getaffinity(0)) if site_scheduler(profile).starts_at_once else None
    speed = SpeedOptions(
        hidden_by_default=_ZERO_3_OVERLAP if more["zero"] == 3 else 0.0,
        **{name: more[name] for name in SpeedOptions.__struct_fields__ if name in more},
    )
    machine = machine_of(profile, speed, more["gpus_per_node"], here)
    if more["network_test"]:
        machine = _tested(machine, more, 4 * table.weights)
    grid = {name: more[name] for name in ("tensor", "pipeline", "accumulate")}
    usual = ("data",) if more["measured"] or table.can_be_tensor_parallel else STRATEGIES
    if more["tensor"] * more["pipeline"] > 1:
        usual = ("3d",)
    billing, measured = profile.billing, _measured(more["measured"]) if more["measured"] else ()
    machine = with_step_deviation(machine, measured)
    return PredictRequest(
        model=table,
        machine=machine,
        batch=batch,
        gpus_per_worker=more["gpus_per_worker"] or machine.gpus_per_node or max(gpus),
        gpus=gpus,
        strategies=more["strategies"] or usual,
        memory=_memory_options(more, machine),
        **grid,
        segments=more["segments"],
        measured=measured,
        samples=more["samples"] or table.samples,
        node_hour=billing.per_node_hour if billing else None,
        cost_unit=billing.unit if billing else None,
    )


def _traced(place: str, more: dict[str, Any]) -> str:
    """Return the table of a torch network, as the tracing program prints it."""
    from hpclaunch.host.this_machine import LocalHost
    from hpclaunch.scaling.model_table import read_model
    from hpclaunch.site.yaml_tree import parse_tree

    if not re.fullmatch(r"[^:\s-][^:\s]*:\w+", place):
        raise BadInputError(f"--from-torch {place!r}: it must be MODULE:FUNCTION, such as nets:make")
    shape = more["shape"]
    if shape is not None and not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", shape):
        raise BadInputError(f"--input {shape}: it must be the shape of one sample, such as 3,224,224")
    program = str(resource_dir("remote") / "trace_torch.py")
    how = "fp32" if more["precision"] != "bf16" else "autocast" if more["copies"] == "fp32" else "bf16"
    answer = LocalHost().run([more["python"], program, place, how, *([shape] if shape else [])])
    if answer.exit_code:
        raise BadInputError(f"--from-torch {place}: {answer.stderr.strip() or answer.exit_code}")
    read_model(parse_tree(answer.stdout, "the table of this network"))
    return answer.stdout


_ZERO_3_OVERLAP = 0.5
"""Of what ZeRO's stage 3 gathers and scatters: FSDP fetches layers during the computation. From the open half
of tests/data/scaling/transformers.json, where 0.5 fits better than 0.9 on H100 and as well on A100."""


def _memory_options(more: dict[str, Any], machine: Machine) -> MemoryOptions:
    from hpclaunch.scaling.memory_need import SLOTS, MemoryOptions

    again = "full" if more["recompute"] else "selective" if more["recompute_attention"] else "none"
    same = {name: more[name] for name in ("zero", "copies", "sequence_parallel", "interleave")}
    saved = 2 if more["precision"] == "bf16" else 4
    return MemoryOptions(
        slots=SLOTS[more["optimizer"]],
        recompute=again,  # type: ignore[arg-type]
        saved_bytes=saved,
        reserved=machine.room_gib is not None,
        **same,
    )


def model_named(name_or_file: str, tokens: int | None = None) -> Model:
    """Return a model by its name or from its file. Raises BadInputError."""
    from hpclaunch.scaling.model_table import read_model, read_named
    from hpclaunch.site.load_profile import is_path
    from hpclaunch.site.validate import did_you_mean
    from hpclaunch.site.yaml_tree import read_tree

    folder = resource_dir("scaling") / "networks"
    if is_path(name_or_file):
        return read_model(read_tree(Path(name_or_file)), tokens)
    transformers = read_tree(folder / "transformers.yaml")
    if name_or_file in transformers.value:
        return read_named(transformers, name_or_file, tokens)
    names = [path.stem for path in folder.glob("*.yaml") if path.stem != "transformers"]
    if name_or_file not in names:
        near = did_you_mean(name_or_file, [*names, *transformers.value])
        raise BadInputError(f"no model is named {name_or_file!r}; {near}", "or give the path of a YAML file")
    return read_model(read_tree(folder / f"{name_or_file}.yaml"), tokens)


def _tested(machine: Machine, more: dict[str, Any], message_bytes: int) -> Machine:
    from hpclaunch.scaling.link_tests import read_link_test
    from hpclaunch.scaling.machine_speed import with_link_test
    from hpclaunch.site.yaml_tree import read_data

    file = Path(more["network_test"])
    text = read_data(file).decode("utf-8", "replace")
    test = read_link_test(text, str(file), more["network_test_gpus"], more["network_test_allreduce"])
    return with_link_test(machine, test, file.name, message_bytes)


def _measured(file: str) -> tuple[MeasuredSize, ...]:
    from hpclaunch.scaling.measured_sizes import read_measurement
    from hpclaunch.site.yaml_tree import read_data

    text = read_data(Path(file)).decode("utf-8-sig", "replace")
    found = read_measurement(text, file, ("seconds_per_step", "seconds"))
    if found.kind == "strong":
        raise BadInputError.case("predict: strong study", file=file)
    return found.sizes
