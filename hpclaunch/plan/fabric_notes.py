"""Notes about the network, before the queue. Pure."""

from __future__ import annotations

from hpclaunch.plan.frameworks import framework_of
from hpclaunch.plan.gpu_visibility import rank_gpus
from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.request import JobRequest
from hpclaunch.site.job_environment import Environment
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import SiteProfile


def fabric_notes(request: JobRequest, profile: SiteProfile, layout: JobLayout) -> tuple[str, ...]:
    """Return the note that nothing loads the plugin by which NCCL or RCCL uses the site's network.

    Without it the libraries send by TCP between nodes and say so only in their own debug output.
    """
    plugin, environment = profile.fabric.plugin, request.environment or Environment()
    if plugin is None or layout.nodes < 2 or not framework_of(request).nccl or not rank_gpus(layout):
        return ()
    from hpclaunch.software.contradictions import loaded  # most jobs need none of it

    if any(name.startswith(plugin.name) for name in loaded(environment, profile)):
        return ()
    page = cite(profile, plugin.source)
    where = "the image must hold it" if environment.container else f"{plugin.install} installs it, {page}"
    checked = "" if request.preflight else "; --preflight looks for it before the ranks start"
    return (
        f"no module {plugin.name} is loaded, without which NCCL and RCCL send by TCP between nodes ({where})"
        f"{checked}",
    )
