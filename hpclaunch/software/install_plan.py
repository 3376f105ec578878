"""How to get a framework on a site: each way with its steps and its job, or why it does not work. Pure."""

import shlex
from collections.abc import Callable
from typing import Any

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.framework_table import GOALS
from hpclaunch.json_document import Document, document_of
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.schema import SiteProfile
from hpclaunch.software.horovod_facts import VERSION
from hpclaunch.software.install_ways import WAYS, NoWayError, Target, Way, unless
from hpclaunch.software.known_pairs import bad_pairs, version_numbers
from hpclaunch.software.script_lines import double_quote


class JobPart(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a job that uses what a way installs, as keys of a job file."""

    site: str
    framework: str
    environment: dict[str, Any] = {}
    mpi: str | None = None
    nodes: int | None = None
    directives: tuple[str, ...] = ()
    env: dict[str, str] = {}


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One way to install."""

    name: str
    possible: bool
    why: str
    steps: tuple[Line, ...] = ()
    job: JobPart | None = None
    versions: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    slow: bool = False


class InstallPlan(Document, frozen=True, kw_only=True):
    """All ways on one site."""

    site: str
    goal: str
    prefix: str
    chosen: str | None
    routes: tuple[Route, ...]

    def route(self, name: str | None = None) -> Route:
        """Return the chosen route, or the named one. Raises BadInputError for one that is not possible."""
        wanted = name or self.chosen
        there = ", ".join(route.name for route in self.routes if route.possible) or "none"
        if wanted is None:
            reasons = "\n".join(f"  {route.name}: {route.why}" for route in self.routes)
            raise BadInputError(f"no way to {self.goal} on {self.site} is known:\n{reasons}")
        found = next(route for route in self.routes if route.name == wanted)
        if not found.possible:
            raise BadInputError(f"--route {wanted}: {found.why}", f"possible on {self.site}: {there}")
        return found


def plan_install(profile: SiteProfile, goal: str, prefix: str | None = None) -> InstallPlan:
    """Return the ways to get a goal on a site; ``prefix``: folder to install into, None: one where the
    profile says that users install, else in the home."""
    folder = profile.software.prefix or "$HOME"
    target = Target(profile=profile, name=goal, prefix=prefix or f"{folder}/hpclaunch-{goal}")
    routes = tuple(_route(name, way, target) for name, way in WAYS.items())
    possible = [route for route in routes if route.possible]
    # Hours of building only where nothing else works, and one node only where nothing works on several.
    possible.sort(key=lambda route: (route.job is not None and route.job.nodes is not None, route.slow))
    chosen = possible[0].name if possible else None
    return InstallPlan(site=profile.name, goal=goal, prefix=target.prefix, chosen=chosen, routes=routes)


def _route(name: str, find: Callable[[Target], Way], target: Target) -> Route:
    """Return the route of a way, unless there is none or its versions are known to fail together."""
    profile, goal = target.profile, target.name
    try:
        unless(f"{profile.name} is switched off" if profile.status == "historic" else None)
        way = find(target)
    except NoWayError as why:
        return Route(name=name, possible=False, why=str(why))
    way = msgspec.structs.replace(way, versions=_implied(way.versions, goal))
    set_by_site = {**profile.fabric.common, **profile.env}
    variables = {key: each.value for key, each in set_by_site.items() if each.value is not None}
    node = profile.node
    features = frozenset(filter(None, (profile.fabric.kind, node.gpu_arch if node else None)))
    pairs = bad_pairs(way.versions, features, {**variables, **way.env})
    if wrong := [pair.with_source for pair in pairs if pair.certain]:
        return Route(name=name, possible=False, why="; ".join([*wrong, way.why]), versions=way.versions)
    environment = msgspec.json.decode(msgspec.json.encode(way.environment))
    framework = GOALS[goal].framework
    job = document_of(JobPart, way, site=profile.name, framework=framework, environment=environment)
    notes = (*way.notes, *(f"not known to work: {pair.with_source}" for pair in pairs))
    return document_of(Route, way, name=name, possible=True, job=job, notes=notes)


def _implied(versions: dict[str, str], goal: str) -> dict[str, str]:
    """Return the versions with the only Horovod, and Keras 3 of TensorFlow since 2.16 (its release notes)."""
    found = dict(versions)
    if GOALS[goal].package == "horovod":
        found.setdefault("horovod", VERSION)
    if (tensorflow := version_numbers(found.get("tensorflow", ""))) and "keras" not in found:
        found["keras"] = "3" if tensorflow[:2] >= (2, 16) else "2"
    return found


ACCOUNT = "SLURM_JOB_ACCOUNT"
"""Variable of jobs with the project; an installation runs outside of a job, so it must be set there."""


def script(plan: InstallPlan, route: Route, job_file: str) -> str:
    """Return a bash script of a route's steps, each under its reason."""
    about = _about(plan, route)
    steps = "\n\n".join(f"# {step.cited}\n{step.text}" for step in route.steps)
    check = f"hpclaunch check --site {plan.site} --file {shlex.quote(job_file)} {GOALS[plan.goal].check}"
    project = f': "${{{ACCOUNT}:?set it to your project: {ACCOUNT}=... bash $0}}"\n' * (
        ACCOUNT in plan.prefix
    )
    return (
        f"#!/bin/bash\n{about}set -eo pipefail\n{project}"
        f"export PREFIX={double_quote(plan.prefix)}\n\n{steps}\n\n"
        f"echo {shlex.quote(f'installed; check it with: {check}')}\n"
    )


def job_text(plan: InstallPlan, route: Route, job_file: str) -> str:
    """Return the job file that uses what a route installs."""
    check = f"# hpclaunch check --site {plan.site} --file {shlex.quote(job_file)} {GOALS[plan.goal].check}\n"
    submit = f"# hpclaunch submit --file {shlex.quote(job_file)} --nodes 1 --time 30m -- python3 train.py\n"
    return f"{_about(plan, route)}{check}{submit}{settings_text(route)}"


def settings_text(route: Route) -> str:
    """Return the settings of the job that uses a route, as YAML."""
    import yaml  # seldom needed

    settings = {key: value for key, value in msgspec.to_builtins(route.job).items() if value}
    text: str = yaml.safe_dump(settings, sort_keys=False, width=110)
    return text


def _about(plan: InstallPlan, route: Route) -> str:
    parts = [f"{plan.goal} on {plan.site}, the way {route.name}: {route.why}", *route.notes]
    if route.versions:
        parts.append(
            "versions: " + ", ".join(f"{name} {version}" for name, version in route.versions.items())
        )
    return "".join(f"# {' '.join(part.split())}\n" for part in parts)
