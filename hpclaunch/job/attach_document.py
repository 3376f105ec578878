"""The JSON document of ``verify --attach``; apart, since other commands need none of what it rests on."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from hpclaunch.job.attached_ranks import AttachedVerdict, RankDetails
from hpclaunch.job.binding_report import RankReport
from hpclaunch.json_document import Document


class AttachDocument(Document, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was found in a running job that hpclaunch did not submit."""

    id: str
    """That of the scheduler."""
    site: str
    ok: bool
    finding: str
    ranks: tuple[RankReport, ...]
    details: tuple[RankDetails, ...]
    right: str | None
    """The launcher's option that would be right; null: the site's node is not described."""
    remedies: tuple[str, ...]
    rules: tuple[str, ...]
    """Rules of lint that explain the problems."""
    note: str | None


DOCUMENTS = {"verify-attach": AttachDocument}
"""Name of the schema -> its type."""


def attach_document(
    job: str, site: str, found: AttachedVerdict, rules: tuple[str, ...], note: str | None
) -> AttachDocument:
    """Return what was found in a running job."""
    return AttachDocument(
        id=job,
        site=site,
        ok=found.ok,
        finding=found.finding,
        ranks=found.ranks,
        details=found.details,
        right=found.right,
        remedies=found.remedies,
        rules=rules,
        note=note,
    )
