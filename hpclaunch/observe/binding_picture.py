"""A picture of what the ranks of one node of a job got, drawn from their own reports."""

from collections.abc import Iterator, Sequence

import msgspec

from hpclaunch.binding.node_binding import NodeBinding, RankBinding
from hpclaunch.binding.picture import svg
from hpclaunch.cpuset import parse_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.job.record import JobRecord, RankReport
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import SiteProfile
from hpclaunch.topology.node_topology import NodeTopology
from hpclaunch.topology.sources import read_live


def binding_picture(record: JobRecord, reports: Sequence[RankReport], node: str | None) -> tuple[str, str]:
    """Return the SVG of one node with the CPUs and GPUs that its ranks reported, and the node's name.

    ``node`` None: the first one with a rank that did not get its binding or left it, else the first rank's.
    Raises BadInputError where no rank reported from the node, or the node is not described.
    """
    if not reports:
        raise BadInputError.case("picture: no binding", record=record)
    node = node or next((one.host for one in reports if not one.ok or one.left), reports[0].host)
    here = [report for report in reports if report.host == node]
    if not here:
        known = ", ".join(dict.fromkeys(report.host for report in reports))
        raise BadInputError(f"--node {node}: no rank of job {record.id} reported from it", f"nodes: {known}")
    topology = _topology(record)
    ranks = tuple(_rank(report, topology) for report in here)
    title = f"measured by the ranks of job {record.id} on {node}"
    captions = [caption for report in here for caption in _captions(report)]
    return svg(topology, NodeBinding(ranks=ranks), title, captions), node


def _captions(report: RankReport) -> Iterator[str]:
    """Yield what is wrong with a rank; the boxes show what it had at its start."""
    who = f"r{report.local_rank}, rank {report.rank} of the job"
    if not report.ok:
        yield f"{who}: {report.verdict}, planned CPUs {report.planned}"
    yield from (f"{who}: {change.name} went to CPUs {change.cpus} while running" for change in report.left)


def _topology(record: JobRecord) -> NodeTopology:
    """Return the node of the profile that the job was planned with; of a local job this machine."""
    try:
        profile = msgspec.convert(record.plan.get("profile"), SiteProfile)
    except msgspec.ValidationError as error:
        raise BadInputError.case("record: profile", record=record, error=error) from None
    topology = site_topology(profile)
    return read_live() if topology is None else topology


def _rank(report: RankReport, topology: NodeTopology) -> RankBinding:
    cpus = parse_cpu_list(report.cpus)
    numa = {core.numa for core in topology.cores if not cpus.isdisjoint(core.cpus)}
    return RankBinding(
        local_rank=report.local_rank,
        cpus=tuple(sorted(cpus)),
        gpus=_gpus(report, topology),
        numa=tuple(sorted(number for number in numa if number is not None)),
    )


def _gpus(report: RankReport, topology: NodeTopology) -> tuple[int, ...]:
    """Return the numbers of the rank's GPUs: by their PCI addresses, where both sides know them."""
    by_address = {gpu.bus_id: gpu.index for gpu in topology.gpus if gpu.bus_id}
    known = {gpu.index for gpu in topology.gpus}
    addresses = report.bus.split(",") if report.bus else []
    names = report.gpus.split(",") if report.gpus else []
    if addresses and all(address in by_address for address in addresses):
        return tuple(sorted(by_address[address] for address in addresses))
    return tuple(sorted(int(name) for name in names if name.isdecimal() and int(name) in known))
