"""Staging: which data are copied to node-local storage before the ranks start, and the script's text for it.

The copying itself is ``hpclaunch/remote/stage.py``, which is sent to the job's folder.
"""

from __future__ import annotations

import posixpath

from hpclaunch.errors import BadInputError
from hpclaunch.plan.launch_plan import Staging
from hpclaunch.plan.request import JobRequest
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.shell_quoting import literal

STAGE = "stage.py"
"""Its name in the job's folder."""
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def split_item(text: str) -> tuple[str, str]:
    """Return source and target of ``SRC[:DEST]``; without DEST the name of the source, of a tar its stem.

    Raises BadInputError where one is missing or the target would lie outside of the job's folder.
    """
    source, colon, target = text.rpartition(":")
    if not colon:
        source, target = text, ""
    if not target:
        target = posixpath.basename(source.rstrip("/"))
        target = next((target.removesuffix(end) for end in _ARCHIVES if target.endswith(end)), target)
    clean = posixpath.normpath(target)
    if not source or clean in ("", ".", "/") or clean.startswith(".."):
        raise BadInputError(
            f"--stage {text}: not a source and a target",
            "use SRC or SRC:DEST, such as --stage /project/data/train or --stage env.sqsh:/tmp/env.sqsh",
        )
    return source, clean


def plan_staging(request: JobRequest, profile: SiteProfile, nodes: int) -> Staging | None:
    """Return what the script stages; None: nothing was requested.

    Raises BadInputError for two sources with one target, and for ``keep_staged`` without ``stage``.
    """
    if not request.stage:
        if request.keep_staged:
            raise BadInputError("--keep-staged without --stage: nothing is staged", "name it with --stage")
        return None
    pairs = [split_item(text) for text in request.stage]
    targets = [target for _, target in pairs]
    if len(set(targets)) < len(targets):
        raise BadInputError("--stage: two sources have the same target", "name targets: SRC:DEST")
    scheduler, launcher = site_scheduler(profile), site_launcher(profile)
    launch = () if scheduler.starts_at_once else (*launcher.one_per_node(nodes), *launcher.overlap)
    stays = bool(launch and launcher.overlap)
    local = profile.node.local_scratch if profile.node else None
    return Staging(
        launch=launch,
        nodes=nodes,
        root=literal(local) if local else "${TMPDIR:-/tmp}",
        pairs=tuple((literal(source), _place(target)) for source, target in pairs),
        node_names=scheduler.node_names,
        afterwards="keep" if request.keep_staged else "stay" if stays else "leave",
    )


def _place(target: str) -> str:
    """Return shell text for the path on the nodes."""
    return literal(target) if target.startswith("/") else f'"$stage_root"/{literal(target)}'
