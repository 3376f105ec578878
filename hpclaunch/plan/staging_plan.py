"""Staging: which data are copied to node-local storage before the ranks start, and the script's text for it.

The copying itself is ``hpclaunch/remote/stage.py``, which is sent with what it imports to the job's folder.
"""

import posixpath
from typing import Literal

from hpclaunch.errors import BadInputError
from hpclaunch.plan.launch_plan import Staging
from hpclaunch.plan.request import JobRequest
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.shell_quoting import literal

STAGE = "stage.py"
"""Its name in the job's folder."""


def split_item(text: str) -> tuple[str, str]:
    """Return source and target of ``SRC[#sha256=SUM][:DEST]``; without DEST SRC's name, of a tar its stem.

    Raises BadInputError where one is missing or the target would lie outside of the job's folder.
    """
    from hpclaunch.remote.archive_reader import ARCHIVES  # few jobs stage something
    from hpclaunch.remote.stage_sources import split_sum

    source, colon, target = text.rpartition(":")
    if not colon:
        source, target = text, ""
    if not target:
        target = posixpath.basename(split_sum(source)[0].rstrip("/"))
        target = next((target.removesuffix(end) for end in ARCHIVES if target.endswith(end)), target)
    clean = posixpath.normpath(target)
    if not source or clean in ("", ".", "/") or clean.startswith(".."):
        raise BadInputError(
            f"--stage {text}: not a source and a target",
            "use SRC or SRC:DEST, such as --stage /project/data/train or --stage env.sqsh:/tmp/env.sqsh",
        )
    if "#sha256=" in source and not split_sum(source)[1]:
        raise BadInputError(f"--stage {text}: not a sha256", "it has 64 digits, as sha256sum prints them")
    return source, clean


def plan_staging(request: JobRequest, profile: SiteProfile, nodes: int) -> Staging | None:
    """Return what the script stages; None: nothing was requested.

    Raises BadInputError for two sources with one target, and for ``keep_staged`` without ``stage``.
    """
    if not request.stage:
        option = "--keep-staged" if request.keep_staged else "--stage-links keep"
        if request.keep_staged or request.stage_links == "keep":
            raise BadInputError(f"{option} without --stage: nothing is staged", "name it with --stage")
        return None
    pairs = [split_item(text) for text in request.stage]
    targets = [target for _, target in pairs]
    if len(set(targets)) < len(targets):
        raise BadInputError("--stage: two sources have the same target", "name targets: SRC:DEST")
    scheduler, launcher = site_scheduler(profile), site_launcher(profile)
    launch = () if scheduler.starts_at_once else (*launcher.one_per_node(nodes), *launcher.overlap)
    local = profile.node.local_scratch if profile.node else None
    return Staging(
        launch=launch,
        root=literal(local) if local else '"${TMPDIR:-/tmp}"',
        pairs=tuple((literal(source), literal(target)) for source, target in pairs),
        links=request.stage_links,
        afterwards=_afterwards(request.keep_staged, bool(launch), bool(launcher.overlap)),
    )


def _afterwards(keep: bool, launched: bool, overlaps: bool) -> Literal["stay", "leave", "here", "keep"]:
    if keep:
        return "keep"
    if not launched:
        return "here"
    return "stay" if overlaps else "leave"
