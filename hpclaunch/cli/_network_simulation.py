"""``predict --simulate``: replays the messages of the allreduces in SimGrid. No command.

``remote/replay_messages.cpp`` is compiled here, with Debian's g++ and libsimgrid-dev, and cached.
"""

import hashlib
import tempfile
from pathlib import Path
from typing import Any

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.folders import read_cached, write_cached
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.package_data import resource_dir
from hpclaunch.scaling.allreduce_messages import message_count, node_programs
from hpclaunch.scaling.machine_speed import Parameter
from hpclaunch.scaling.prediction import Prediction, PredictRequest
from hpclaunch.scaling.simulated_exchange import (
    NetworkOptions,
    NetworkShape,
    SimulatedExchange,
    Simulation,
    closed_forms,
    network_shape,
    replay_text,
    simulated_names,
    why_not_simulated,
)
from hpclaunch.site.load_profile import load_site


def with_simulation(
    prediction: Prediction, request: PredictRequest, site: str, options: dict[str, Any]
) -> Prediction:
    """Return the prediction with the exchanges of all sizes of several nodes.

    Raises BadInputError where network or nodes are not known, RefusedError where a program is missing.
    """
    import msgspec

    per_node = request.machine.gpus_per_node
    if per_node is None:
        raise BadInputError.case("simulate: no GPUs")
    if max(request.gpus) <= per_node:
        raise BadInputError.case("simulate: one node", gpus=max(request.gpus), per_node=per_node)
    stated = NetworkOptions(**{name: options[name] for name in NetworkOptions.__struct_fields__})
    parameters = {parameter.name: parameter for parameter in prediction.parameters}
    nodes, link = -(-max(request.gpus) // per_node), parameters["network_gb_s"].value
    shape = network_shape(load_site(site), stated, nodes, link)
    data = [point for point in prediction.points if point.strategy == "data"]
    computed = {point.gpus: point.compute_s + point.waiting_s for point in data}
    with tempfile.TemporaryDirectory(prefix="hpclaunch-") as folder:
        runs = _Replay(Path(folder), shape, parameters, per_node, 4 * request.model.weights)
        found = []
        for gpus in request.gpus:
            if gpus > per_node:
                for name in simulated_names(shape):
                    one = runs.exchange(name, gpus, options["most_messages"])
                    found.append(_with_step(one, computed.get(gpus), request.machine.overlap.value))
    simulation = Simulation(network=shape, exchanges=tuple(found))
    return msgspec.structs.replace(prediction, simulation=simulation)


def _with_step(one: SimulatedExchange, compute_s: float | None, overlap: float) -> SimulatedExchange:
    import msgspec

    if compute_s is None or one.simulated_s is None:
        return one
    return msgspec.structs.replace(one, step_s=compute_s + (1 - overlap) * one.simulated_s)


class _Replay:
    """The compiled program, and what is the same for all exchanges."""

    def __init__(
        self, folder: Path, shape: NetworkShape, parameters: dict[str, Parameter], per_node: int, nbytes: int
    ) -> None:
        self._host, self._shape, self._parameters = LocalHost(), shape, parameters
        self._per_node, self._bytes = per_node, nbytes
        self._program = _compiled(self._host, folder)

    def exchange(self, allreduce: str, gpus: int, most_messages: int) -> SimulatedExchange:
        """Return one simulated exchange, or the reason why it is not simulated."""
        import msgspec

        nodes, rest = divmod(gpus, self._per_node)
        exchange = SimulatedExchange(
            gpus=gpus,
            nodes=nodes + bool(rest),
            allreduce=allreduce,
            network=self._shape.kind,
            bytes=self._bytes,
        )
        if rest:
            why = f"not simulated: not a multiple of the {self._per_node} GPUs of a node"
            return msgspec.structs.replace(exchange, remark=why)
        per_switch = int(self._shape.layout[1]) if self._shape.kind in ("fat-tree", "loop") else 1
        at_switch = min(per_switch * self._per_node, gpus)
        within_s, closed_form_s = closed_forms(
            allreduce, nodes, self._per_node, self._bytes, self._parameters
        )
        exchange = msgspec.structs.replace(exchange, closed_form_s=closed_form_s)
        if remark := why_not_simulated(allreduce, self._shape, gpus, at_switch):
            return msgspec.structs.replace(exchange, remark=remark)
        if message_count(allreduce, nodes, self._per_node) > most_messages:
            why = f"not simulated: more than {most_messages:,} messages (--most-messages)"
            return msgspec.structs.replace(exchange, remark=why)
        programs = node_programs(allreduce, nodes, self._per_node, self._bytes // 4, at_switch)
        text = replay_text(self._shape, nodes, self._per_node, self._parameters, programs.text)
        done = self._host.run([self._program, "--log=root.thres:error"], stdin=text.encode())
        if done.exit_code:
            problem = done.stderr.strip().splitlines() or [f"exit {done.exit_code}"]
            raise RefusedError.case("simulate: failed", why=f"{allreduce} on {gpus} GPUs: {problem[0]}")
        return msgspec.structs.replace(
            exchange,
            simulated_s=within_s + float(done.stdout),
            messages=programs.messages,
            network_bytes=programs.nbytes,
        )


def _compiled(host: LocalHost, folder: Path) -> str:
    source = resource_dir("remote") / "replay_messages.cpp"
    name = f"replay-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
    program = folder / "replay_messages"
    if cached := read_cached(name):
        host.write_file(str(program), cached, 0o700)
        if host.run([str(program), "--version"]).exit_code == 0:  # its library may have been replaced
            return str(program)
    command = ["g++", "-O2", "-std=c++17", str(source), "-o", str(program), "-lsimgrid"]
    try:
        done = host.run(command)
    except RefusedError:
        raise RefusedError.case("simulate: failed", why="g++ is not installed") from None
    if done.exit_code:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        if any("simgrid/s4u.hpp" in line or "-lsimgrid" in line for line in done.stderr.splitlines()):
            raise RefusedError.case("simulate: failed", why="SimGrid is not installed")
        why = f"{source.name} does not compile: {(errors or ['g++ failed'])[0]}"
        raise RefusedError.case("simulate: failed", why=why)
    write_cached(name, program.read_bytes())
    return str(program)
