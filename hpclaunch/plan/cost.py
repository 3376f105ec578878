"""What a job costs at most, by the site's rule of billing. Pure."""

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.request_rules import array_indices
from hpclaunch.plural import counted
from hpclaunch.site.schema import Billing, SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler
from hpclaunch.walltime import format_walltime


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """An upper bound: whole nodes, for the whole walltime, with all restarts and all jobs of an array."""

    amount: float
    unit: str
    text: str
    """With the arithmetic, for the user."""


def cost_at_most(request: JobRequest, profile: SiteProfile, layout: JobLayout) -> Cost | None:
    """Return what the job costs at most; None where the profile does not know the rule."""
    billing = profile.billing
    if billing is None:
        return None
    runs = 1 + request.max_restarts
    jobs = len(array_indices(request.array, site_scheduler(profile))) if request.array else 1
    hours = layout.walltime_s / 3600
    amount = layout.nodes * hours * billing.per_node_hour * runs * jobs
    factors = [
        counted(layout.nodes, "node"),
        format_walltime(layout.walltime_s),
        f"{billing.per_node_hour:g} {billing.unit} per node and hour",
        *([f"{runs} runs"] if runs > 1 else []),
        *([f"{jobs} jobs"] if jobs > 1 else []),
    ]
    text = f"it costs at most {amount:,.4g} {billing.unit}: {' x '.join(factors)}"
    return Cost(amount=amount, unit=billing.unit, text=text)


def cost_of(billing: Billing, nodes: int, seconds: int) -> Cost:
    """Return what whole nodes cost that a job has had for this long."""
    amount = nodes * seconds / 3600 * billing.per_node_hour
    rate = f"{billing.per_node_hour:g} {billing.unit} per node and hour"
    factors = f"{counted(nodes, 'node')} x {format_walltime(seconds)} x {rate}"
    return Cost(amount=amount, unit=billing.unit, text=f"{amount:,.4g} {billing.unit}: {factors}")


def check_budget(request: JobRequest, profile: SiteProfile, layout: JobLayout) -> None:
    """Refuse a job that may cost more than ``--budget``, or whose cost is unknown then."""
    if request.budget is None:
        return
    cost = cost_at_most(request, profile, layout)
    if cost is None:
        raise BadInputError(
            f"--budget {request.budget:g}: the profile of {profile.name} does not state what a job costs",
            "leave --budget out, or add billing: to your own profile",
        )
    if cost.amount > request.budget:
        raise BadInputError(
            f"--budget {request.budget:g}: {cost.text}", "request fewer nodes or a shorter walltime"
        )
