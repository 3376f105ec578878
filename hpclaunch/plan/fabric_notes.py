"""Notes about the network, before the queue. Pure."""

from hpclaunch.plan.frameworks import framework_of
from hpclaunch.plan.gpu_visibility import rank_gpus
from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.request import JobRequest
from hpclaunch.site.job_environment import Environment, JobContainer
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import FabricPlugin, SiteProfile
from hpclaunch.software.container_runtimes import facts_of, is_guessed


def container_notes(request: JobRequest, profile: SiteProfile) -> tuple[str, ...]:
    """Return the note that the program which starts a container is not documented."""
    container = request.environment.container if request.environment else None
    note = is_guessed(profile, container) if container else None
    return (note,) if note else ()


def fabric_notes(request: JobRequest, profile: SiteProfile, layout: JobLayout) -> tuple[str, ...]:
    """Return the note that nothing loads the plugin by which NCCL or RCCL uses the site's network.

    Without it the libraries send by TCP between nodes and say so only in their own debug output. Where the
    site's variables demand the plugin, the job ends as it starts.
    """
    plugin, environment = profile.fabric.plugin, request.environment or Environment()
    if plugin is None or layout.nodes < 2 or not framework_of(request).nccl or not rank_gpus(layout):
        return ()
    there, page = _is_there(plugin, request, environment, profile), cite(profile, plugin.source)
    source = profile.sources.get(plugin.source or "")
    doubted = source is not None and source.evidence == "conflicting" and not environment.container
    if there and not doubted:
        return ()
    where = "the image must hold it" if environment.container else f"{plugin.install} brings it, {page}"
    demanded = profile.fabric.multi_node.get("NCCL_NET")
    without = "messages between nodes go by TCP"
    if demanded and demanded.value and not (environment.container and demanded.outside_containers):
        without = f"NCCL_NET={demanded.value} ends the job"
    checked = "" if request.preflight else "; --preflight looks for it before the ranks start"
    if there:
        return (
            f"whether {plugin.name} brings NCCL's plugin is not sure, sources disagree ({page}); without it"
            f" {without}{checked}",
        )
    return (
        f"NCCL's and RCCL's plugin {plugin.name} is not loaded, without which {without} ({where}){checked}",
    )


def _in_image(container: JobContainer, profile: SiteProfile) -> bool:
    """Whether an image is one of the site's, which hold the plugin."""
    site = facts_of(profile, container)
    return bool(site and site.fabric_in_images and container.image.startswith(site.images))


def _is_there(
    plugin: FabricPlugin, request: JobRequest, environment: Environment, profile: SiteProfile
) -> bool:
    """Whether a module, an option of the job or the container engine brings the plugin."""
    from hpclaunch.software.contradictions import loaded  # most jobs need none of it

    if environment.container and (plugin.in_containers or _in_image(environment.container, profile)):
        return True
    if plugin.directive and any(text.startswith(plugin.directive) for text in request.directives):
        return True
    return any(f"/{plugin.name}" in f"/{name}" for name in loaded(environment, profile))
