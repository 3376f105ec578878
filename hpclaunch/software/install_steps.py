"""The shell lines of an installation. Pure.

The steps are data: ``install_recipes.yaml``. The script exports PREFIX, the folder to install into; its steps
run in bash with ``set -eo pipefail``.
"""

import shlex
from functools import cache
from typing import Any

import msgspec

from hpclaunch.framework_table import GOALS, Goal
from hpclaunch.package_data import package_table
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.job_environment import Environment
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import Offer, SiteProfile
from hpclaunch.software.container_lines import bind_lines, gpu_flag, module_lines
from hpclaunch.software.container_runtimes import RUNTIMES, facts_of, runtime_of
from hpclaunch.software.horovod_facts import CXX17_FROM_TORCH, VERSION, build_variables
from hpclaunch.software.shell_quoting import double_quote
from hpclaunch.software.software_lines import environment_lines

_CPUS = {"Grace": "aarch64", "POWER": "ppc64le"}


class NoWayError(Exception):
    """Why software cannot be had in some way; the plan says so."""


def unless(*reasons: str | None) -> None:
    """End a way by the first of these reasons that there is."""
    if why := next(filter(None, reasons), None):
        raise NoWayError(why)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The goal and the machine of a plan."""

    profile: SiteProfile
    name: str
    """Key of ``GOALS``."""
    prefix: str

    @property
    def goal(self) -> Goal:
        """The row of the table."""
        return GOALS[self.name]

    @property
    def base(self) -> str:
        """The goal that a package goes on top of, else the goal itself."""
        return self.goal.base or self.name

    @property
    def vendor(self) -> str | None:
        """The vendor of the site's GPUs; None: it has none."""
        node = self.profile.node
        return node.gpu_vendor if node and node.gpus else None

    @property
    def arch(self) -> str | None:
        """The architecture of its GPUs."""
        node = self.profile.node
        return node.gpu_arch if node and node.gpus else None

    @property
    def slingshot(self) -> bool:
        """Whether its network is Slingshot, which needs a libfabric with cxi and a plugin of NCCL."""
        return self.profile.fabric.kind.startswith("slingshot")

    @property
    def anonymous(self) -> bool:
        """Whether the profile describes no machine: what it has is not known."""
        return self.profile.status == "generic"

    @property
    def offline(self) -> str | None:
        """Why nothing can be downloaded; None: it can."""
        if self.profile.internet_on_login is False and not self.profile.internet_on_compute:
            return f"neither login nor compute nodes of {self.profile.name} reach the internet"
        return None


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A way before it is known whether its versions go together."""

    why: str
    steps: tuple[Line, ...] = ()
    environment: Environment = Environment()
    mpi: str | None = None
    nodes: int | None = None
    directives: tuple[str, ...] = ()
    env: dict[str, str] = {}
    versions: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    slow: bool = False


def part(name: str, /, **facts: Any) -> tuple[Line, ...]:
    """Return the steps of a part of ``install_recipes.yaml`` with these facts."""
    rows = package_table("software/install_recipes.yaml")["steps"][name]
    return tuple(
        Line(text=_template(row["run"]).render(facts), reason=_template(row["why"]).render(facts))
        for row in rows
        if "if" not in row or facts[row["if"]]
    )


@cache
def _template(text: str) -> Any:
    import jinja2  # only where an installation is planned

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - a shell script, not HTML: the filters quote
    )
    environment.filters.update(quoted=shlex.quote, in_double_quotes=double_quote)
    return environment.from_string(text)


def head(profile: SiteProfile) -> tuple[Line, ...]:
    """Return the check that the script runs on the kind of CPU that the jobs have."""
    model = profile.node.cpu_model if profile.node else ""
    cpu = next((name for word, name in _CPUS.items() if word in model), None)
    return part("head", cpu=cpu) if cpu else ()


def prove(target: Target) -> tuple[Line, ...]:
    """Return the step that fails where the goal is not there afterwards."""
    return part("prove", program=target.goal.prove)


def package_on_top(target: Target, venv: str = "$PREFIX") -> tuple[Line, ...]:
    """Return the steps that install a goal's package into a venv on top of its base."""
    return (*part("venv", folder=venv, system=True), *package(target), *prove(target))


def package(target: Target) -> tuple[Line, ...]:
    """Return the steps of a goal's package; Horovod is compiled with the variables of the site."""
    if target.goal.package != "horovod":
        return part("package", package=target.goal.package)
    torch = target.goal.base == "torch"
    variables = build_variables(target.profile, "pytorch" if torch else "tensorflow")
    exports = " ".join(
        f"{key}={double_quote(value) if '$' in value else value}" for key, value in variables.items()
    )
    since = ".".join(map(str, CXX17_FROM_TORCH)) if torch else None
    return part("horovod", exports=exports, version=VERSION, cxx17_from=since)


def documented(profile: SiteProfile, offer: Offer) -> tuple[Line, ...]:
    """Return the steps that the site documents."""
    source = f"from the site ({cite(profile, offer.source)})"
    return tuple(Line(text=text, reason=source) for text in offer.install)


def inside_offer(profile: SiteProfile, offer: Offer, inside: tuple[Line, ...]) -> tuple[Line, ...]:
    """Return the steps that run others where an offer is loaded: here, in its image, or behind ``enter``."""
    first = (*head(profile), *documented(profile, offer))
    container = offer.environment.container
    if container is not None:
        runtime = runtime_of(profile)
        words = (runtime, "exec", *gpu_flag(profile, container), double_quote(container.image))
        return (
            *first,
            *module_lines(profile),
            *part("seen_in_container"),
            *bind_lines(RUNTIMES[runtime].binds, ("$PREFIX",), profile, facts_of(profile)),
            *part("inside", enter=" ".join(words), inside=inside),
        )
    if offer.enter is not None:
        return (*first, *part("inside", enter=offer.enter, inside=inside))
    return (*first, *environment_lines(offer.environment, profile), *inside)
