"""The cores and threads that a site documents for the ranks of one framework. Pure."""

from msgspec.structs import replace

from hpclaunch.binding.node_binding import NodeBinding, RankBinding
from hpclaunch.cpuset import parse_cpu_list
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.queue_limits import source_of
from hpclaunch.site.schema import FrameworkCores, SiteProfile
from hpclaunch.topology.node_topology import NodeTopology


def documented_cores(request: JobRequest, profile: SiteProfile, tasks_per_node: int) -> FrameworkCores | None:
    """Return the site's list for the job's framework; None: there is none for this number of ranks.

    Nor is there one where the request says how many cores or threads each rank gets.
    """
    asked = request.cpus_per_task is not None or request.threads_per_core != 1
    found = None if asked else profile.binding.cores_for.get(request.framework or "")
    return found if found and len(found.cores) == tasks_per_node else None


def with_documented_cores(
    binding: NodeBinding, documented: FrameworkCores | None, topology: NodeTopology
) -> NodeBinding:
    """Return the binding with the site's cores; the GPUs of each rank stay."""
    if documented is None:
        return binding
    ranks = zip(binding.ranks, map(parse_cpu_list, documented.cores), strict=True)
    return NodeBinding(ranks=tuple(_moved(rank, cores, topology) for rank, cores in ranks))


def _moved(rank: RankBinding, cores: frozenset[int], topology: NodeTopology) -> RankBinding:
    numa = tuple(node.id for node in topology.numa_nodes if node.cpus & cores)
    groups = {core.l3 for core in topology.cores if core.l3 is not None and cores.intersection(core.cpus)}
    return replace(rank, cpus=tuple(sorted(cores)), numa=numa, l3=tuple(sorted(groups)))


def cores_line(request: JobRequest, profile: SiteProfile, tasks_per_node: int) -> list[str]:
    """Return the sentence on the cores for the head of a script."""
    documented = documented_cores(request, profile, tasks_per_node)
    if documented is None:
        return []
    source = source_of(profile, documented.source)
    return [f"Cores as the site documents them for {request.framework}: {documented.reason} ({source})."]


def threads_line(request: JobRequest, profile: SiteProfile, cores: int, reason: str) -> Line:
    """Return OMP_NUM_THREADS, which OpenMP, OpenBLAS and MKL read, for ranks with this number of cores."""
    documented = profile.binding.threads_for.get(request.framework or "")
    if documented is None or documented.value >= cores or request.cpus_per_task is not None:
        return Line(text=f"export OMP_NUM_THREADS={max(1, cores)}", reason=reason)
    source = source_of(profile, documented.source)
    text = f"export OMP_NUM_THREADS={documented.value}"
    return Line(text=text, reason=f"threads for each rank: {documented.reason}", source=source)
